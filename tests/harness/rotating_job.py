"""Commits checkpoints in a loop and keeps the two newest, until its standard input ends.

Arguments: the directory, and the prefix of a checkpoint, of which all others are copies.
"""

import itertools
import os
import pathlib
import shutil
import sys
import threading

from estimator_tpu_embedding.checkpoint import commit
from estimator_tpu_embedding.checkpoint.directory import claimed
from estimator_tpu_embedding.checkpoint.files import Storage
from estimator_tpu_embedding.checkpoint.manifest import Manifest, read_manifest
from estimator_tpu_embedding.checkpoint.retention import Retention

SECONDS = .2
"""Between commits: a reader on a busy machine must come to its end within some of two of them."""


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
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    saved = []
    with claimed(directory), Storage(directory) as storage:
        for step in itertools.count(1):
            saved = commit.commit(
                storage, step, write_copy(source, step), lambda files: Manifest(
                    step=step, tables=tables, created_by='test', files=files),
                saved=saved, retention=Retention(2))
            if step in (2, 3):
                print(step, flush=True)
            if ended.wait(SECONDS):
                return


if __name__ == '__main__':
    main(*sys.argv[1:])
