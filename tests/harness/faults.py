"""Storage that fails, or takes the process with it, at the N-th operation."""

import errno
import os
import pathlib
import signal

from estimator_tpu_embedding.checkpoint.files import Storage

ERRORS = ('ENOSPC', 'EIO')
KILL = 'SIGKILL'


class Faults:
    """Counts operations and lets one of them fail.

    Attributes:
      log: the operations so far, in words.
    """

    def __init__(self, at=None, kind=KILL, lasting=False):
        """Prepares a fault.

        Args:
          at: the number of the operation, from 1; `None` for none.
          kind: the name of an errno, or `KILL` for the process to end at once.
          lasting: whether all later operations fail too.
        """
        self.log = []
        self._at, self._kind, self._lasting = at, kind, lasting

    def meet(self, operation, begin=lambda: None):
        """Fails if this operation is the one.

        Args:
          operation: in words.
          begin: called first if it fails: does the part of it that happens all the same.
        """
        self.log.append(operation)
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

    def write(self, path, content):
        """Writes a file; if this is the operation that fails, the first half of it."""
        file = pathlib.Path(path)
        self.meet(f'write {file.name}', lambda: file.write_bytes(content[:len(content) // 2]))
        file.write_bytes(content)

    def failpoint(self, phase):
        """For `on_phase`: every phase is an operation."""
        self.meet(f'phase {phase}')


class FaultyStorage(Storage):
    """A storage whose changes meet faults; `create` fails when half of the file is written."""

    def __init__(self, directory, faults):
        """Opens a directory."""
        super().__init__(directory)
        self._faults = faults

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
