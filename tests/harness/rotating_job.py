"""Commits a checkpoint for each line of its standard input and keeps the two newest, until it ends.

Arguments: the directory, and the prefix of a checkpoint, of which all others are copies.
"""

import contextlib
import itertools
import os
import pathlib
import shutil
import sys

from harness.checkpoints import commit
from harness.processes import started

from estimator_tpu_embedding.checkpoint.commit import Retention
from estimator_tpu_embedding.checkpoint.manifest import Manifest, read_manifest
from estimator_tpu_embedding.checkpoint.model_dir import claimed
from estimator_tpu_embedding.checkpoint.storage import Storage


class Rotation:
    """The job in another process."""

    def __init__(self, process, lines):
        self._process, self._lines = process, lines

    def __call__(self):
        """Lets all checkpoints that are there be replaced; returns when they are."""
        with self.beside():
            pass

    @contextlib.contextmanager
    def beside(self):
        """Lets the same happen while the body runs."""
        self._process.stdin.write('\n\n')
        self._process.stdin.flush()
        yield
        for _ in range(2):
            next(self._lines)


@contextlib.contextmanager
def rotating(directory, source):
    """Yields the job, which has committed two copies of a checkpoint into a directory."""
    with started('-m', 'harness.rotating_job', directory, source) as (process, lines):
        rotation = Rotation(process, lines)
        rotation()
        yield rotation


def write_copy(source, step):
    """Returns a function that writes a checkpoint as a copy of another one."""
    def write(prefix):
        assert prefix.endswith(f'-{step}')
        for path in pathlib.Path(source).parent.iterdir():
            name = os.path.basename(source)
            if path.name.startswith(f'{name}.') and not path.name.endswith('.json'):
                shutil.copy(path, prefix + path.name.removeprefix(name))
    return write


def main(directory, source):
    """Commits steps 1, 2, 3 and so on."""
    tables = read_manifest(source).tables
    saved = []
    with claimed(directory), Storage(directory) as storage:
        for step, _ in zip(itertools.count(1), sys.stdin):
            saved = commit(
                storage, step, write_copy(source, step), lambda files: Manifest(
                    step=step, tables=tables, created_by='test', files=files),
                saved=saved, retention=Retention(2))
            print(step, flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
