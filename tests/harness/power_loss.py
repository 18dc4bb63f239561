"""Computes every state of a disk after a loss of power, for a recorded run of operations.

The model: names change in the order of the calls, as in the journals of ext4 and xfs. Some of the
last changes may be lost, but none before the last `sync` of their directory. The content of a file
is safe once it was synced. Until then it may be there, or nothing of it, or half, or as many zeros.
Files that were there at the beginning are safe.
"""

import itertools
import os
import pathlib
import tempfile

from estimator_tpu_embedding.checkpoint.storage import Storage


class RecordingStorage(Storage):
    """A storage that records all its changes.

    Attributes:
      operations: tuples of a verb and names; a file that appears has its content too.
    """

    def __init__(self, directory):
        """Opens a directory; the files that are in it are safe."""
        super().__init__(directory)
        self.operations = []
        self._root = pathlib.Path(directory)
        self.before = contents(directory)

    def make_folder(self, name):
        super().make_folder(name)
        self.operations.append(('make_folder', name))

    def create(self, name, content):
        super().create(name, content)
        self.operations.append(('create', name, content))

    def sync(self, name=''):
        super().sync(name)
        self.operations.append(('sync', name))

    def rename(self, source, target):
        super().rename(source, target)
        self.operations.append(('rename', source, target))

    def remove(self, name):
        super().remove(name)
        self.operations.append(('remove', name))

    def remove_folder(self, name):
        super().remove_folder(name)  # It removes the files in it by `remove`.
        self.operations.append(('remove_folder', name))

    def write(self, path, content):
        """Writes a file as others do, by its path and without syncing it."""
        pathlib.Path(path).write_bytes(content)
        name = str(pathlib.Path(path).relative_to(self._root))
        self.operations.append(('create', name, content))

    def done(self, step):
        """Notes that the commit of a step has returned: from here on it must not be lost."""
        self.operations.append(('done', step))


def contents(directory):
    """`{name: bytes}` of all files below a directory, and `{name: None}` of folders."""
    root = pathlib.Path(directory)
    return {str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
            for path in root.rglob('*')}


class _Disk:
    """The names and files after a run of operations.

    Attributes:
      files: the content of every file there ever was, `None` for a folder, by its number.
      journal: `{name: number}` at the beginning and after every change of names.
      durable: so many entries of the journal cannot be lost any more.
      unsynced: numbers of files whose content can.
    """

    def __init__(self, before):
        self.files = list(before.values())
        self.journal = [{name: number for number, name in enumerate(before)}]
        self.durable = 1
        self.unsynced = set()
        self._last_in = {}  # folder -> entries of the journal up to the last change in it

    def apply(self, verb, name, *rest):
        """Does one operation."""
        names = dict(self.journal[-1])
        if verb == 'sync':
            self._sync(name, names.get(name))
        elif verb in ('create', 'make_folder'):
            names[name] = len(self.files)
            self.files += rest or [None]
            if verb == 'create':
                self.unsynced.add(names[name])
            self._enter(names, name)
        else:
            file = names.pop(name)
            if verb == 'rename':
                names[rest[0]] = file
                inside = [one for one in names if one.startswith(f'{name}/')]
                for one in inside:  # Of a folder.
                    names[rest[0] + one.removeprefix(name)] = names.pop(one)
            self._enter(names, name, *rest)

    def _sync(self, name, file):
        if file is None or self.files[file] is None:
            self.durable = max(self.durable, self._last_in.get(name, 0))
        else:
            self.unsynced.discard(file)

    def _enter(self, names, *changed):
        self.journal.append(names)
        for name in changed:
            self._last_in[os.path.dirname(name)] = len(self.journal)


def crash_states(before, operations):
    """All states after a loss of power at any instant, each once.

    Args:
      before: `contents` of the directory at the beginning.
      operations: of a RecordingStorage.

    Returns:
      `{state: step}`: a state is a frozenset of the items that `contents` has; the step is the
      highest whose commit had returned when power was lost, -1 for none.
    """
    disk, step, moments = _Disk(before), -1, {}
    for verb, *rest in [('sync', ''), *operations]:
        if verb == 'done':
            step, = rest
        else:
            disk.apply(verb, *rest)
        for entry in range(disk.durable - 1, len(disk.journal)):
            risky = disk.unsynced.intersection(disk.journal[entry].values())
            moments[entry, frozenset(risky)] = step  # Steps only rise.
    found = {}
    for (entry, risky), step in moments.items():
        for damaged in _damages({file: disk.files[file] for file in sorted(risky)}):
            state = frozenset((name, damaged.get(file, disk.files[file]))
                              for name, file in disk.journal[entry].items())
            found[state] = max(step, found.get(state, -1))
    return found


def _damages(risky):
    """Yields `{number: content}` of files that are damaged in one way: one, two, or all."""
    yield {}
    for count in {1, 2, len(risky)}:
        for files in itertools.combinations(risky, count):
            for those in zip(*(_remains(risky[file]) for file in files)):
                yield dict(zip(files, those))


def _remains(content):
    """Yields what may be left of a file that was not synced."""
    return b'', content[:len(content) // 2], bytes(len(content))


def broken_promises(storage, read, is_at):
    """Lets a reader loose on every state after a loss of power.

    Args:
      storage: a RecordingStorage that is done.
      read: called with a directory; returns (prefix, step), or None.
      is_at: called with a prefix and a step; whether the files there belong to the step.

    Yields:
      What is wrong in one of them, in words.
    """
    states = crash_states(storage.before, storage.operations)
    disk = contents(storage.path(''))
    assert frozenset(disk.items()) in states, 'something was changed and not recorded'
    beside = pathlib.Path(storage.path('')).parent  # In memory, if that is.
    for state, step in states.items():
        with tempfile.TemporaryDirectory(dir=beside) as directory:
            for name, content in sorted(state, key=lambda item: item[0]):
                path = pathlib.Path(directory, name)
                path.mkdir() if content is None else path.write_bytes(content)
            yield from _verdict(directory, step, read, is_at)


def _verdict(directory, step, read, is_at):
    """Yields the errors of a reader that looks after `step` was committed; -1 is no step."""
    names = sorted(contents(directory))
    try:
        found = read(directory)
    except Exception as error:  # Whatever it is, the job does not go on.
        yield f'{error!r} with {names}'
        return
    if found is None:
        if step >= 0:
            yield f'nothing was found after step {step}, with {names}'
    elif found[1] < step or not is_at(*found):
        yield f'step {found[1]} was found after step {step}, with {names}'
