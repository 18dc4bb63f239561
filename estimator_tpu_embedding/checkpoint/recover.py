"""Finds the newest checkpoint of a directory whose files are undamaged, for a job to restore.

The manifests tell which checkpoints are complete, and the size and hash of each file. The file
`checkpoint` is a hint for legacy tools. It counts only if it names a checkpoint in another
directory. A checkpoint of the original has no manifest. It is read whole once, and compared with
the checksums that TensorFlow wrote.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from absl import logging

from ..errors import CorruptCheckpointError, Problem, shown
from . import pointer, scan
from .bundle import Bundle
from .candidates import candidates
from .file_names import index_of, label, manifest_path, partial_of, replaced_by, step_of
from .layout import Held, check_manifest, check_step
from .manifest import Manifest, digest, read_manifest
from .options import VERIFY, CheckpointOptions
from .rotation import LOOKS, Signature, signature

_verified: dict[str, tuple[str, Signature]] = {}
"""By prefix, how this process wrote or verified a checkpoint, and the state of its files then. So a
nested evaluation need not read again a checkpoint that has just been written."""
_COMMITTED = 'committed'
_OTHER_DIGEST = 'E625'


class Recovered(NamedTuple):
    """A checkpoint that can be restored.

    Attributes:
      prefix: its path without the endings of its files.
      step: the step that its name says; `None` if it says none.
      manifest: `None` if it has none.
      skipped: the problems of newer ones.
    """

    prefix: str
    step: int | None
    manifest: Manifest | None
    skipped: tuple[Problem, ...] = ()


def recover(directory: str, options: CheckpointOptions = CheckpointOptions()
            ) -> Recovered | None:
    """Finds the newest checkpoint of a directory that can be restored.

    Args:
      directory: need not exist.
      options: `follow_pointer`, `verify` and `expected_digest` count here.

    Returns:
      `None` if there is no checkpoint at all.

    Raises:
      CorruptCheckpointError: E619 if the file `checkpoint` leads elsewhere. E612 if there are
        checkpoints and none of them is whole: a training that began at step 0 beside them would
        overwrite them one by one. E625 if the newest is not the expected one. E616 if there is
        none, and TensorFlow could not safely read the file `checkpoint`.
    """
    found = _recovered(directory, options) if os.path.isdir(directory) else None
    if found is None:
        pointer.require_harmless(directory)
    return found


def _recovered(directory: str, options: CheckpointOptions) -> Recovered | None:
    elsewhere = _named_elsewhere(directory)
    if elsewhere is not None:
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
        return Recovered(elsewhere, step_of(elsewhere), verify(elsewhere, options))
    for _ in range(LOOKS):
        names = candidates(directory)
        try:
            found = _newest_whole(directory, names, options)
        except CorruptCheckpointError:
            if names == candidates(directory):
                raise
        else:
            if found is None or not found.skipped or names == candidates(directory):
                return found
    return _newest_whole(directory, candidates(directory), options)


def newest_checkpoint(directory: str, options: CheckpointOptions = CheckpointOptions()
                      ) -> str | None:
    """Returns the prefix of the checkpoint that `recover` finds."""
    found = recover(directory, options)
    return found.prefix if found is not None else None


def verify(checkpoint: str, options: CheckpointOptions = CheckpointOptions()) -> Manifest | None:
    """Makes sure that a checkpoint is as it was committed.

    Args:
      checkpoint: its prefix.
      options: `verify` and `expected_digest` count here.

    Returns:
      Its manifest, if it has one.

    Raises:
      CorruptCheckpointError: with all problems. E611 and E614 are about its manifest, E618 and E613
        about its files, E625 is about `expected_digest`.
    """
    manifest = read_manifest(checkpoint)
    if options.expected_digest is not None and not _was_verified(checkpoint, _COMMITTED):
        _check_digest(checkpoint, options.expected_digest)
    check_step(checkpoint, manifest)
    if _was_verified(checkpoint, _COMMITTED, options.verify, VERIFY[0]):
        return manifest
    before = signature(checkpoint)
    if manifest is not None and manifest.files:
        scan.check_files(checkpoint, manifest.files, options.verify)
    elif options.verify != 'size':
        unchecked = scan.check_crcs(checkpoint)
        if unchecked:
            logging.warning('%s: these tensors have no checksum that can be read: %s',
                            checkpoint, ', '.join(shown(name, 200) for name in unchecked))
    check_manifest(Held.of(Bundle.open(checkpoint), manifest))
    _verified[os.path.realpath(checkpoint)] = options.verify, before
    return manifest


def is_whole(checkpoint: str) -> bool:
    """Whether a checkpoint is there and passes `verify`."""
    if not (os.path.lexists(manifest_path(checkpoint)) or os.path.lexists(index_of(checkpoint))):
        return False
    if _was_verified(checkpoint, _COMMITTED, *VERIFY):
        return True
    try:
        verify(checkpoint)
    except CorruptCheckpointError as error:
        logging.warning('%s It is written anew.', error)
        return False
    return True


def remember(checkpoint: str) -> None:
    """Records that this process has just committed a checkpoint, so it counts as verified."""
    _verified[os.path.realpath(checkpoint)] = _COMMITTED, signature(checkpoint)


def _was_verified(checkpoint: str, *ways: str) -> bool:
    """Whether this process has verified the present files, in one of these ways."""
    way, before = _verified.get(os.path.realpath(checkpoint), ('', ()))
    return way in ways and before == signature(checkpoint)


def _newest_whole(directory: str, names: Sequence[str], options: CheckpointOptions
                  ) -> Recovered | None:
    """Finds the newest whole checkpoint of several; returns `None` if there is none to look at."""
    skipped: list[Problem] = []
    for name in reversed(names):
        prefix = os.path.join(directory, name)
        try:
            manifest = verify(prefix, options)
        except CorruptCheckpointError as error:
            if os.path.lexists(partial_of(prefix)):
                continue  # It is being published or deleted; some storage renames by copying.
            if error.code == _OTHER_DIGEST:
                raise
            skipped += error.problems
            logging.warning('%s', error)
            continue
        return Recovered(prefix, step_of(prefix), manifest, tuple(skipped))
    if skipped:
        remedy = ('Restore a copy; or to start anew, move them and the file "checkpoint" away.'
                  if not any(map(replaced_by, os.listdir(directory))) else
                  'A killed job was replacing it, and the next job here finishes that.')
        raise CorruptCheckpointError(Problem(
            'E612', f'model_dir {directory}', 'one of its checkpoints must be whole',
            f'none of {", ".join(map(shown, names[-5:]))}', remedy), *skipped)
    return None


def _named_elsewhere(directory: str) -> str | None:
    """Returns the path in the file `checkpoint`, if it leads out of the directory."""
    named = pointer.read(directory)
    if named is None:
        return None
    return os.path.join(directory, named.newest) if named.name_in(directory) is None else None


def _check_digest(checkpoint: str, expected: str) -> None:
    try:
        found = digest(checkpoint)
    except OSError:
        found = 'no manifest'
    if found != expected:
        raise CorruptCheckpointError(Problem(
            _OTHER_DIGEST, label(checkpoint),
            f'the SHA-256 of its manifest must be {expected}', found,
            'If this job has saved it since, leave expected_digest out; else find out who wrote '
            'it, and move it away. etpe checkpoint show prints the SHA-256 of a manifest.'))
