"""Opens a checkpoint for a job: the newest one of a directory whose files are undamaged.

The manifests tell which checkpoints are complete, and the size and hash of each file. The file
`checkpoint` is a hint for legacy tools. It counts only if it names a checkpoint in another
directory. A checkpoint of the original has no manifest. It is read whole once, and compared with
the checksums that TensorFlow wrote.

An evaluation or prediction chooses a checkpoint, builds a graph for seconds, and then restores. By
then a training job may have deleted it. `Following` then takes the newest one, unless the user
named one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from absl import logging

from ..errors import CheckpointError, CorruptCheckpointError, Problem, shown
from . import file_names, integrity, pointer
from .bundle import Bundle
from .concurrent_changes import MOST_TRIES, Signature, is_gone, rotated_away, signature, steady
from .file_names import BASE, GRAPH, INDEX, MANIFEST, PARTIAL, label
from .manifest import Manifest, StoredTable, digest, read_manifest, tensors_of
from .options import CheckpointOptions

_OTHER_DIGEST = 'E625'


class Opened:
    """What an opened checkpoint holds: its index and its manifest, read once and passed on.

    Attributes:
      bundle: its tensors.
      manifest: the one beside it; `None` if there is none.
      shapes: of all its tensors, by name.
      skipped: the problems of newer ones, if it was chosen in their place.
    """

    def __init__(self, bundle: Bundle, manifest: Manifest | None):
        self.bundle, self.manifest = bundle, manifest
        self.skipped: tuple[Problem, ...] = ()
        self.shapes = {name: tensor.shape for name, tensor in bundle.tensors.items()}

    @classmethod
    def open(cls, checkpoint: str) -> Opened:
        """Reads index and manifest; raises CorruptCheckpointError if it cannot."""
        return cls(Bundle.open(checkpoint), read_manifest(checkpoint))

    @property
    def prefix(self) -> str:
        """Its path without a suffix."""
        return self.bundle.prefix

    @property
    def step(self) -> int | None:
        """The step that its name says; `None` if it says none."""
        return file_names.step_of(self.prefix)

    @property
    def where(self) -> str:
        """The checkpoint, as messages call it."""
        return label(self.prefix)

    @property
    def tables(self) -> dict[str, StoredTable]:
        """The tables of its manifest, by variable name; none without a manifest."""
        return self.manifest.tables if self.manifest is not None else {}

    def lacking(self, variable: str, table: StoredTable) -> list[str]:
        """Returns the tensors of a table and its slots that are not there, or have another form."""
        return [name for name in tensors_of(variable, table)
                if self.shapes.get(name) != (table.rows, table.width)
                or not self.bundle.tensors[name].is_float]


def check_manifest(opened: Opened) -> None:
    """Makes sure that a manifest belongs to the checkpoint that it lies beside.

    It must say the step in the name. Every tensor of its tables and slots must be there, with the
    shape that it says, and hold floats. E614 has all that is not so.
    """
    untrue = []
    for variable, table in sorted(opened.tables.items()):
        lacking = opened.lacking(variable, table)
        if lacking:
            form = f'{table.rows} x {table.width}'
            tensors = ' and '.join(f'tensor "{shown(name)}"' for name in lacking)
            untrue.append(f'table "{shown(variable)}" of {form}, with floats of {form} in '
                          f'{tensors}')
    if opened.manifest is not None and opened.step != opened.manifest.step:
        untrue.append(f'step {opened.manifest.step}')
    if untrue:
        raise CorruptCheckpointError(Problem(
            'E614', opened.where, 'its manifest must say what it holds', ', '.join(untrue),
            'Restore both from the same copy.'))


class Known:
    """The checkpoints that a job has verified or written, and the state of their files then.

    So what has just been written is not read again, as by a nested evaluation.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Signature, bool]] = {}

    def add(self, checkpoint: str, seen: Signature, *, is_own: bool) -> None:
        """Adds one with this state of its files; `is_own` if this job has written them."""
        self._seen[os.path.realpath(checkpoint)] = seen, is_own

    def has(self, checkpoint: str) -> bool:
        """Whether a checkpoint is as it was when it was added."""
        seen, _ = self._seen.get(os.path.realpath(checkpoint), ((), False))
        return bool(seen) and seen == signature(checkpoint)

    def has_written(self, checkpoint: str) -> bool:
        """Whether a checkpoint is as this job has written it."""
        return self.has(checkpoint) and self._seen[os.path.realpath(checkpoint)][1]


def recover(directory: str, options: CheckpointOptions = CheckpointOptions(),
            known: Known | None = None) -> Opened | None:
    """Finds the newest checkpoint of a directory that can be restored.

    `known` is what the job knows already; it gets what is found. A directory that is not there has
    no checkpoint.

    Raises:
      CorruptCheckpointError: E619 if the file `checkpoint` leads elsewhere. E612 if there are
        checkpoints and none of them is whole: a training that began at step 0 beside them would
        overwrite them one by one. E625 if the newest is not the expected one. E616 if there is
        none, and TensorFlow could not safely read the file `checkpoint`.
    """
    known = known or Known()
    found = _recovered(directory, options, known) if os.path.isdir(directory) else None
    if found is None:
        pointer.require_harmless(directory)
    return found


def _recovered(directory: str, options: CheckpointOptions, known: Known) -> Opened | None:
    named = pointer.read(directory)
    if named is not None and named.name_in(directory) is None:
        elsewhere = os.path.join(directory, named.newest)
        if not options.follow_pointer:
            raise CorruptCheckpointError(Problem(
                'E619', f'model_dir {directory}', 'its file "checkpoint" must name a checkpoint '
                'in it', shown(os.path.realpath(elsewhere), 300), 'If that is meant, use '
                'etpe run --follow-pointer or CheckpointOptions(follow_pointer=True); else '
                'remove the file "checkpoint".'))
        own = candidates(directory)
        if own:
            raise CorruptCheckpointError(Problem(
                'E619', f'model_dir {directory}', 'to begin from elsewhere it must hold no '
                'checkpoint of its own', ', '.join(map(shown, own[-5:])),
                'Move them away; or to go on from them, remove the file "checkpoint".'))
        return verify(elsewhere, options, known)
    return steady(lambda: _newest_whole(directory, candidates(directory), options, known),
                  lambda: candidates(directory), lambda found: found is not None and found.skipped)


def verify(checkpoint: str, options: CheckpointOptions = CheckpointOptions(),
           known: Known | None = None) -> Opened:
    """Opens a checkpoint, and makes sure that it is as it was committed.

    E611 and E614 are about its manifest, E618 and E613 about its files, E625 is about
    `expected_digest`.
    """
    known = known or Known()
    manifest, seen = read_manifest(checkpoint), signature(checkpoint)
    if options.expected_digest is not None and not known.has_written(checkpoint):
        _check_digest(checkpoint, options.expected_digest)
    if known.has(checkpoint):
        return Opened(Bundle.open(checkpoint), manifest)
    if manifest is not None:
        bundle = integrity.check_files(checkpoint, manifest.files, options.verify)
    else:
        bundle = Bundle.open(checkpoint)
        unchecked = integrity.check_crcs(bundle) if options.verify != 'size' else ()
        if unchecked:
            logging.warning('%s: these tensors have no checksum that can be read: %s',
                            checkpoint, ', '.join(shown(name, 200) for name in unchecked))
    opened = Opened(bundle, manifest)
    check_manifest(opened)
    if options.verify != 'size':
        known.add(checkpoint, seen, is_own=False)
    return opened


def is_whole(checkpoint: str, known: Known | None = None) -> bool:
    """Whether a checkpoint is there and passes `verify`."""
    if not (os.path.lexists(checkpoint + MANIFEST) or os.path.lexists(checkpoint + INDEX)):
        return False
    try:
        return known is not None and known.has(checkpoint) or bool(verify(checkpoint))
    except CorruptCheckpointError as error:
        logging.warning('%s It is written anew.', error)
        return False


def candidates(directory: str) -> list[str]:
    """Returns the name of every possible checkpoint, the newest last.

    The step in a name says how new it is. A checkpoint with a manifest and a step counts. One
    without a manifest counts if it is called `model.ckpt-<step>`; other files of TensorFlow, such
    as the states of iterators, have names of the same form. Any other name counts only if the file
    `checkpoint` says that it is the newest, and if it does not begin with `model.ckpt-`.

    If there is nothing else, the name in the file `checkpoint` counts even if no checkpoint has
    it: its loss must be noticed.
    """
    found: dict[tuple[int, str], set[str]] = {}
    for file in os.listdir(directory):
        part = file_names.parse(file)
        step = file_names.step_of(part.checkpoint) if part is not None else None
        if part is not None and part.kind != GRAPH and step is not None:
            found.setdefault((step, part.checkpoint), set()).add(part.kind)
    begun = [key for key, kinds in sorted(found.items())
             if MANIFEST in kinds or file_names.is_of_a_job(key[1]) and PARTIAL not in kinds]
    # TensorFlow writes the index last, so data alone is of a save that did not end. If there is
    # nothing else, something was lost.
    complete = [key for key in begun if found[key] & {INDEX, MANIFEST}]
    names = [name for _, name in complete or begun]
    name = pointer.named_in(directory)
    if name and name not in names and (
            not names or not name.startswith(f'{BASE}-')
            and os.path.lexists(os.path.join(directory, name + INDEX))):
        names.append(name)
    return names


def _newest_whole(directory: str, names: Sequence[str], options: CheckpointOptions, known: Known
                  ) -> Opened | None:
    """Finds the newest whole checkpoint of several; returns `None` if there is none to look at."""
    skipped: list[Problem] = []
    for name in reversed(names):
        prefix = os.path.join(directory, name)
        try:
            found = verify(prefix, options, known)
            found.skipped = tuple(skipped)
            return found
        except CorruptCheckpointError as error:
            if os.path.lexists(prefix + PARTIAL):
                continue  # It is being published or deleted; some storage renames by copying.
            if error.code == _OTHER_DIGEST:
                raise
            skipped += error.problems
            logging.warning('%s', error)
    if skipped:
        remedy = ('Restore a copy; or to start anew, move them and the file "checkpoint" away.'
                  if not any(map(file_names.replaced_by, os.listdir(directory))) else
                  'A killed job was replacing it, and the next job here finishes that.')
        raise CorruptCheckpointError(Problem(
            'E612', f'model_dir {directory}', 'one of its checkpoints must be whole',
            f'none of {", ".join(map(shown, names[-5:]))}', remedy), *skipped)
    return None


def _check_digest(checkpoint: str, expected: str) -> None:
    try:
        found = digest(checkpoint)
    except CorruptCheckpointError:
        found = 'no manifest'
    if found != expected:
        raise CorruptCheckpointError(Problem(
            _OTHER_DIGEST, label(checkpoint),
            f'the SHA-256 of its manifest must be {expected}', found,
            'If this job has saved it since, leave expected_digest out; else find out who wrote '
            'it, and move it away. etpe checkpoint show prints the SHA-256 of a manifest.'))


class Following:
    """The checkpoint that a reader follows: the chosen one, or the one that took its place."""

    def __init__(self, directory: str, opened: Opened, options: CheckpointOptions, *,
                 is_named: bool):
        """Begins with a whole checkpoint; if the user named it, no other takes its place."""
        self.opened = opened
        self._directory, self._options, self._is_named = directory, options, is_named

    @property
    def prefix(self) -> str:
        """The path of the checkpoint without a suffix."""
        return self.opened.prefix

    def read(self, look: Callable[[Opened], None]) -> None:
        """Calls a function with the checkpoint, and again with a newer one if that is gone.

        An error of the function counts if the checkpoint is still there. E628 if the checkpoint
        was named and is gone, or each one is.
        """
        for _ in range(MOST_TRIES):
            try:
                return look(self.opened)
            except Exception as error:
                if not is_gone(self.prefix):
                    raise
                found = None if self._is_named else recover(self._directory, self._options)
                if found is None:
                    raise rotated_away(self.prefix) from error
                logging.warning('%s', Problem(
                    'W619', label(self.prefix), 'a job deleted it before it was read',
                    f'{shown(os.path.basename(found.prefix), 255)} takes its place'))
                self.opened = found
        raise rotated_away(self.prefix)


def chosen(directory: str, named: str | None, options: CheckpointOptions,
           known: Known | None = None) -> Following | None:
    """Returns the named checkpoint, or the newest of a directory, if there is any.

    It is verified in both cases. E628 if the named one is missing, and newer ones are there.
    """
    if not named:
        found = recover(directory, options, known)
        return None if found is None else Following(directory, found, options, is_named=False)
    try:
        return Following(directory, verify(named, options, known), options, is_named=True)
    except CheckpointError as error:
        if is_gone(named) and _has_newer(named):
            raise rotated_away(named) from error
        raise


def _has_newer(checkpoint: str) -> bool:
    directory = os.path.dirname(checkpoint) or '.'
    own = file_names.step_of(checkpoint)
    return os.path.isdir(directory) and any(
        step is not None and (own is None or step > own)
        for step in map(file_names.step_of, candidates(directory)))
