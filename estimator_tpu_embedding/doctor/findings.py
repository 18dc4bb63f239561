"""The facts that the parts of the doctor hand to each other.

`sources` finds and reads files. `diagnose.scan` turns the tree of each into a `ScannedFile` without
asking a library: `statements` follows names, `tpu_calls` finds calls for TPUs. `oracle` asks
the installed libraries about all `Question`s at once. `verdicts` and `traps` turn what was found
into `Finding`s. `diagnose.diagnose` calls them all and writes a `Prescription` per program, and
`cli/etpe_doctor.py` prints its `Diagnosis`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where something is written. Lines and columns count from 1, columns in characters."""

    path: str  # As the user reaches it from the paths that they gave.
    line: int  # Of the file; of the cell in a notebook.
    column: int = 1
    end_line: int = 0
    end_column: int = 0  # The column after the last character.
    cell: int = 0  # The number of the code cell of a notebook, from 1; 0 in a Python file.


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
    """What the installed libraries have of a question: who finds it, and what is missing.

    Attributes:
      lacking: the first name that was not found where most of it was found, dotted, such as
        `'tensorflow.contrib'`; `''` where all was found somewhere.
      is_examined: whether its names were looked up; of packages that are never imported, only the
        modules were sought.
    """

    python: bool  # Plain Python: this TensorFlow, with the Keras that it selects.
    run: bool  # `etpe run`.
    tf1: bool  # `etpe run --tf1`.
    contrib: bool  # `etpe run --tf1 --contrib`.
    refused: str = ''  # The message, if it resolves but raises when it is used (E930).
    lacking: str = ''
    keras2: bool = False  # Plain Python, if TF_USE_LEGACY_KERAS selects Keras 2.
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
    """A construct of one file that `traps` judges: a `kind` as `'TPUConfig'`, and what is given."""

    kind: str
    place: Place
    values: Mapping[str, Any]


class Finding(NamedTuple):
    """One line of the doctor's report."""

    code: str  # Its letter is the severity.
    place: Place | None  # None for a finding about the environment.
    subject: str  # The name or construct, as it is resolved, as `'tensorflow.contrib.slim'`.
    written: str  # The same, as the source has it; `''` if it is not in the source.
    message: str  # The matter, and which flag, package or successor helps.
    verdict: str = ''  # One of `VERDICTS`, or `''` if it is not about a name.


VERDICTS = ('there', 'restored', 'tf1', 'contrib', 'package', 'moved', 'lost', 'unknown')
"""What becomes of a name: it is there; `etpe run` restores it, alone, with `--tf1` or with
`--contrib`; a package has it; it has moved; it is not supported; nobody can tell.
"""


@dataclasses.dataclass(slots=True)
class ScannedFile:
    """What one file says, as far as the file alone can tell it.

    Attributes:
      unknown: names that cannot be resolved, and why, as findings W201 or W202.
      problems: why the file, or the rest of it, was not read (E131 to E133).
      imports: paths of files of the project that it imports, with the places where it does first,
        in their order.
      is_program: whether it runs something when it is started: a notebook, or a file with
        `if __name__ == '__main__'`, `tf.app.run()` or a call of its own at its top level.
      bodies: the bodies of functions, as (cell, first line, last line).
    """

    path: str  # As in its places.
    uses: list[Use] = dataclasses.field(default_factory=list)  # In the order of the source.
    unknown: list[Finding] = dataclasses.field(default_factory=list)
    escapes: dict[Use, None] = dataclasses.field(default_factory=dict)  # What is not followed.
    facts: list[Fact] = dataclasses.field(default_factory=list)
    problems: list[Finding] = dataclasses.field(default_factory=list)
    imports: dict[str, Place] = dataclasses.field(default_factory=dict)
    base: str = ''  # The folder from which it must be run as a module; empty for a script.
    is_program: bool = False
    is_sure: bool = False  # Whether it is a program even if another file imports it.
    lines: int = 0
    bodies: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)
    patched: set[str] = dataclasses.field(default_factory=set)  # Names that it assigns to.
    early: set[Use] = dataclasses.field(default_factory=set)  # Uses of them that come before.


MOST_STOPS = 100


class Prescription(NamedTuple):
    """How to run one program."""

    path: str
    command: str  # Such as `'etpe run --tf1 --hosts 2 --cores 4 train.py'`.
    reasons: Sequence[str]  # One per flag, as `'--tf1: tf.placeholder (a.py:7)'`.
    stops: Sequence[Finding]  # The first `MOST_STOPS` that may stop it, in the order of a run.


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole result."""

    environment: Sequence[tuple[str, str]]  # (What, its state), as `('TensorFlow', '2.21.0')`.
    findings: Sequence[Finding]  # Those that are selected, by file, place and code.
    prescriptions: Sequence[Prescription]
    verdicts: Mapping[str, int]  # Uses of names, also those without a finding, by `VERDICTS`.
    files: int  # That were read, wholly or in part.
    lines: int
    ignored: Mapping[str, int]  # Findings that were not selected, by code.
    left_out: Sequence[tuple[str, str]]  # Folders and files that were not scanned, and why.
