"""The facts that the parts of the doctor hand to each other.

`sources` finds and reads files. `scan` turns the tree of each into a `ScannedFile`, without asking
any library: `statements` follows its names, `constructs` collects its calls for TPUs. `oracle` asks
the installed libraries about all `Question`s at once. `verdicts` and `traps` turn facts and answers
into `Finding`s. `diagnose.diagnose` calls them all and writes a `Prescription` per program, and
`cli/etpe_doctor.py` prints its `Diagnosis`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where something is written. Lines and columns count from 1, columns in characters.

    Attributes:
      path: of the file, as the user reaches it from the paths that they gave.
      line: of the file; of the cell in a notebook.
      column: of the first character.
      end_line: the last line of it.
      end_column: the column after the last character.
      cell: number of the code cell of a notebook, from 1; 0 in a Python file.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    cell: int = 0


class Question(NamedTuple):
    """A name of a library, as the import system and attribute look-ups would resolve it.

    Attributes:
      module: the module that is imported, such as `'tensorflow.compat.v1'`.
      names: dotted names that are looked up in it; `''` for `import module` alone.
      is_import: whether the first of `names` comes from `from module import name`: where it is no
        attribute, it is sought as a module, which nobody may have imported.
    """

    module: str
    names: str = ''
    is_import: bool = False

    @property
    def path(self) -> str:
        """The whole name, such as `'tensorflow.compat.v1.train.Saver'`."""
        return f'{self.module}.{self.names}' if self.names else self.module


class Answer(NamedTuple):
    """What the installed libraries have of a question.

    Attributes:
      python: whether plain Python finds it: this TensorFlow, with the Keras that it selects.
      run: whether `etpe run` does.
      tf1: whether `etpe run --tf1` does.
      contrib: whether `etpe run --tf1 --contrib` does.
      refused: the message, if it resolves but raises when it is used (E930), or `''`.
      lacking: the first name that was not found where most of it was found, dotted, such as
        `'tensorflow.contrib'`; `''` where all was found somewhere.
      error: what the last look-up raised, such as `ModuleNotFoundError: No module named 'x'`.
      keras2: whether plain Python finds it if TF_USE_LEGACY_KERAS selects Keras 2.
      is_examined: whether its names were looked up; of packages that are never imported, only the
        modules were sought.
      is_module: whether it is a module whose names can be looked up.
    """

    python: bool
    run: bool
    tf1: bool
    contrib: bool
    refused: str = ''
    lacking: str = ''
    error: str = ''
    keras2: bool = False
    is_examined: bool = True
    is_module: bool = False


CERTAIN, TRIED, FALLBACK, TESTED, STARRED = range(5)
"""How a place or a meaning is chosen: not at all; by the body of a `try`; where something failed or
lacks the name, as in a handler; by a test of a version or of names; by `from a import *`, if that
has the name. Of two that hold at once the greater counts.
"""


class Use(NamedTuple):
    """A place where a file uses a name of a library.

    Attributes:
      place: of the longest chain of names, or of the name in an import statement.
      question: what it resolves to.
      written: as the source has it, such as `'tf.train.Saver'`.
      is_guarded: whether the program goes on without it. It is in the body of a `try` whose handler
        catches what a missing name raises and does not end the program. Or it is under a test of a
        version or of the names of a library.
      attempt: the number of the `try` in its file that catches its failure; 0 if none does.
      fallbacks: numbers of those in whose handlers it is, negative for their `else`.
      choice: how this meaning of the place is chosen among others.
      chosen: the path of what was chosen, in which names are looked up here.
      has_other: whether the place may also mean something that is no name of a library.
    """

    place: Place
    question: Question
    written: str
    is_guarded: bool = False
    attempt: int = 0
    fallbacks: tuple[int, ...] = ()
    choice: int = CERTAIN
    chosen: str = ''
    has_other: bool = False


class Fact(NamedTuple):
    """A construct of one file that `traps` judges, perhaps together with those of other files.

    Attributes:
      kind: such as `'TPUConfig'`; the constants are in `constructs`.
      place: where.
      values: literals and texts that were found, such as `{'num_shards': 8}`.
    """

    kind: str
    place: Place
    values: Mapping[str, Any]


class Finding(NamedTuple):
    """One line of the doctor's report.

    Attributes:
      code: such as `'E101'`; its letter is the severity.
      place: where; `None` for a finding about the environment.
      subject: the name or construct, as it is resolved, such as `'tensorflow.contrib.slim'`.
      written: the same, as the source has it; `''` if it is not in the source.
      message: the matter, and which flag, package or successor helps.
      verdict: one of `VERDICTS`, or `''` if it is not about a name.
    """

    code: str
    place: Place | None
    subject: str
    written: str
    message: str
    verdict: str = ''


VERDICTS = ('there', 'restored', 'tf1', 'contrib', 'package', 'moved', 'lost', 'unknown')
"""What becomes of a name: it is there; `etpe run` restores it, alone, with `--tf1` or with
`--contrib`; a package has it; it has moved; it is not supported; nobody can tell.
"""


@dataclasses.dataclass(slots=True)
class ScannedFile:
    """What one file says, as far as the file alone can tell it.

    Attributes:
      path: as in its places.
      uses: of names of libraries, in the order of the source.
      unknown: names that cannot be resolved, and why, as findings W201 or W202.
      escapes: names of libraries where the scan does not follow them.
      facts: constructs for `traps`.
      problems: why the file, or the rest of it, was not read (E131 to E133), and what it alone
        decides (E104, E122).
      imports: paths of files of the project that it imports, with the places where it does first,
        in their order.
      base: the folder from which it must be run as a module; `''` for a script.
      is_program: whether it runs something when it is started: a notebook, or a file with
        `if __name__ == '__main__'`, `tf.app.run()` or a call of its own at its top level.
      lines: number of lines.
      bodies: the bodies of functions, as (cell, first line, last line).
    """

    path: str
    uses: list[Use] = dataclasses.field(default_factory=list)
    unknown: list[Finding] = dataclasses.field(default_factory=list)
    escapes: dict[Use, None] = dataclasses.field(default_factory=dict)
    facts: list[Fact] = dataclasses.field(default_factory=list)
    problems: list[Finding] = dataclasses.field(default_factory=list)
    imports: dict[str, Place] = dataclasses.field(default_factory=dict)
    base: str = ''
    is_program: bool = False
    lines: int = 0
    bodies: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)


MOST_STOPS = 100


class Prescription(NamedTuple):
    """How to run one program.

    Attributes:
      path: of the program.
      command: such as `'etpe run --tf1 --hosts 2 --cores 4 train.py'`.
      reasons: one per flag, such as `'--tf1: tf.placeholder (line 7) and 12 other names'`.
      stops: the findings E that may stop it, in the order of a run. After `MOST_STOPS`
        no more are listed.
    """

    path: str
    command: str
    reasons: Sequence[str]
    stops: Sequence[Finding]


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole result.

    Attributes:
      environment: (what, its state), such as `('TensorFlow', '2.21.0')`.
      findings: all that are selected, by file, place and code.
      prescriptions: of each program.
      verdicts: how many uses of names have each of `VERDICTS`, also of those without a finding.
      files: number of files that were read, wholly or in part.
      lines: of these.
      ignored: how many findings were not selected, by code.
      left_out: folders and files that were not scanned, and why.
    """

    environment: Sequence[tuple[str, str]]
    findings: Sequence[Finding]
    prescriptions: Sequence[Prescription]
    verdicts: Mapping[str, int]
    files: int
    lines: int
    ignored: Mapping[str, int]
    left_out: Sequence[tuple[str, str]]
