"""Makes storage fail, or kill its process, at the N-th operation."""

import errno
import os
import pathlib
import signal

from estimator_tpu_embedding.checkpoint.storage import Storage

ERRORS = ('ENOSPC', 'EIO')
KILL = 'SIGKILL'


class Ended(Exception):
    """Stands for the death of the process, in a test that must outlive it."""


class Faults:
    """Counts operations and lets one of them fail.

    Attributes:
      log: the operations so far, in words.
    """

    def __init__(self, at=None, kind=KILL, lasting=False, before=lambda operation: None):
        """Prepares a fault.

        Args:
          at: the number of the operation, from 1; `None` for none.
          kind: the name of an errno, or `KILL` for the process to end at once.
          lasting: whether all later operations fail too.
          before: called with each operation, before it begins.
        """
        self.log = []
        self._at, self._kind, self._lasting, self._before = at, kind, lasting, before

    def meet(self, operation, begin=lambda: None):
        """Fails if this operation is the one.

        Args:
          operation: in words.
          begin: called first if it fails: does the part of it that happens all the same.
        """
        self.log.append(operation)
        self._before(operation)
        if self._at is None or len(self.log) < self._at:
            return
        if len(self.log) == self._at:
            begin()
        elif not self._lasting:
            return
        if self._kind == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        number = getattr(errno, self._kind)
        raise OSError(number, os.strerror(number), operation)


class FaultyStorage(Storage):
    """A storage whose changes meet faults; a write that fails leaves half of its file.

    Attributes:
      returned: the steps whose commits returned.
    """

    def __init__(self, directory, faults, done=lambda step: None):
        """Opens a directory.

        Args:
          directory: where.
          faults: they count the operations on this storage.
          done: called with each step whose commit has returned.
        """
        super().__init__(directory)
        self.returned = []
        self._faults, self._done = faults, done

    def write(self, path, content):
        """Writes a file by its path, as others do."""
        file = pathlib.Path(path)
        self._faults.meet(f'write {file.name}', lambda: file.write_bytes(
            content[:len(content) // 2]))
        file.write_bytes(content)

    def done(self, step):
        """The commit of a step has returned."""
        self.returned.append(step)
        self._done(step)

    def make_folder(self, name):
        self._faults.meet(f'make folder {name}')
        super().make_folder(name)

    def create(self, name, content):
        self._faults.meet(f'create {name}', lambda: super(FaultyStorage, self).create(
            name, content[:len(content) // 2]))
        super().create(name, content)

    def sync(self, name=''):
        self._faults.meet(f'sync {name}')
        super().sync(name)

    def rename(self, source, target):
        self._faults.meet(f'rename {source} {target}')
        super().rename(source, target)

    def remove(self, name):
        self._faults.meet(f'remove {name}')
        super().remove(name)

    def remove_folder(self, name):
        self._faults.meet(f'remove folder {name}')
        super().remove_folder(name)
