"""The facts that the parts of the doctor hand to each other.

`sources` finds and reads files. `scan` turns the tree of each into a `ScannedFile`, without asking
any library: `statements` follows its names, `constructs` collects its calls for TPUs. `oracle` asks
the installed libraries about all `Question`s at once. `verdicts` and `traps` turn facts and answers
into `Finding`s, and `command` into a `Prescription`. `diagnose.diagnose` calls them all, and
`cli/doctor.py` prints its `Diagnosis`.
"""

from __future__ import annotations

import dataclasses
import itertools
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
      nearest: the name that is there and most similar to the one that is not; `''` if none is.
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
    nearest: str = ''
    is_examined: bool = True
    is_module: bool = False


class Use(NamedTuple):
    """A place where a file uses a name of a library.

    Attributes:
      place: of the longest chain of names, or of the name in an import statement.
      question: what it resolves to.
      written: as the source has it, such as `'tf.train.Saver'`.
      is_guarded: whether the program goes on without it. It is in the body of a `try` whose handler
        catches what a missing name raises and does not end the program. Or it is under a test of a
        version or of the names of a library.
      only_if: the place is reached, or the name means this, only where all of these are there.
      unless: groups of questions. It is not reached, or the name means something else, where all of
        any one group are there. A handler of ImportError is such a place: what its body imports.
      is_choice: whether a test of a version or of the names of a library chose this meaning, so
        another meaning of the same place may do.
    """

    place: Place
    question: Question
    written: str
    is_guarded: bool = False
    only_if: tuple[Question, ...] = ()
    unless: tuple[tuple[Question, ...], ...] = ()
    is_choice: bool = False

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions whose answers decide about it, its own first."""
        return (self.question, *self.only_if, *itertools.chain.from_iterable(self.unless))

    def is_reached(self, there: Mapping[Question, bool]) -> bool:
        """Whether a run gets to it with this meaning; a question without an answer excuses nothing.

        A use that is not reached stops no program. One that is reached does, if it is missing and
        not guarded, also in the handler of a `try`.

        Args:
          there: whether each is there in the world at hand, such as with `--tf1`.
        """
        return (all(there.get(one, True) for one in self.only_if)
                and not any(all(there.get(one, False) for one in group) for group in self.unless))


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
      successor: the one exact successor as a whole path, such as `'collections.abc.Mapping'` or
        `'builtins.int'`, or `''`.
    """

    code: str
    place: Place | None
    subject: str
    written: str
    message: str
    verdict: str = ''
    successor: str = ''


VERDICTS = ('there', 'restored', 'tf1', 'contrib', 'package', 'moved', 'lost', 'unknown')
"""What becomes of a name: it is there; `etpe run` restores it, alone, with `--tf1` or with
`--contrib`; a package has it; it has moved; it is not supported; nobody can tell.
"""


@dataclasses.dataclass(slots=True)
class ScannedFile:
    """What one file says, as far as the file alone can tell it.

    Attributes:
      path: as in its places.
      module: the dotted name by which files of the project may import it; `''` for a notebook.
      uses: of names of libraries, in the order of the source.
      unknown: names that cannot be resolved, and why, as findings W201 or W202.
      escapes: names of libraries where the scan does not follow them, with what to say of those
        that are modules.
      facts: constructs for `traps`.
      problems: why the file, or the rest of it, was not read (E131 to E133), and what it alone
        decides (E104, E122, W217).
      imports: modules of the project that it imports, with the place of the first import.
      is_program: whether it runs something when it is started: a notebook, or a file with
        `if __name__ == '__main__'`, `tf.app.run()` or a call of its own at its top level.
      lines: number of lines.
      bodies: the bodies of functions, as (cell, first line, last line).
    """

    path: str
    module: str
    uses: list[Use] = dataclasses.field(default_factory=list)
    unknown: list[Finding] = dataclasses.field(default_factory=list)
    escapes: dict[Use, str] = dataclasses.field(default_factory=dict)
    facts: list[Fact] = dataclasses.field(default_factory=list)
    problems: list[Finding] = dataclasses.field(default_factory=list)
    imports: dict[str, Place] = dataclasses.field(default_factory=dict)
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
      stops: the findings E that may stop it, as `Reached.stops_of` orders them. After `MOST_STOPS`
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
