"""Imports, exports and imports again a table that is larger than the memory of this process.

`python -m harness.limited_rows FOLDER` needs room for five such tables in the folder.
"""

import pathlib
import resource
import sys

import numpy as np

from estimator_tpu_embedding.cli.main import main
from estimator_tpu_embedding.migration.rows import built, exported  # noqa: F401

ROWS, WIDTH, STEP, LIMIT = 500_000, 512, 10_000, 600 * 10**6


def write(folder):
    """Writes rows that begin with their ids, from the last id to the first."""
    ids = np.arange(ROWS)[::-1].copy()
    np.save(folder / 'ids.npy', ids)
    with open(folder / 'rows.npy', 'wb') as file:
        np.lib.format.write_array_header_1_0(
            file, {'descr': '<f4', 'fortran_order': False, 'shape': (ROWS, WIDTH)})
        for first in range(0, ROWS, STEP):
            file.write(np.repeat(ids[first:first + STEP, None], WIDTH, 1).astype('f4').data)


def etpe(*arguments):
    assert main(['checkpoint', *map(str, arguments)]) == 0


def run(folder):
    """Raises an error if a row comes back in another place."""
    write(folder)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, before[1]))
    etpe('import', folder, folder / 'a', '--table', 't=rows.npy', '--ids', 't=ids.npy')
    etpe('export', folder / 'a', '-o', folder / 'out')
    etpe('import', folder / 'out', folder / 'b')
    etpe('diff', folder / 'a', folder / 'b')
    resource.setrlimit(resource.RLIMIT_AS, before)
    first = 0
    for path in sorted((folder / 'out').glob('*.npy')):
        rows = np.lib.format.open_memmap(path, 'r')
        assert (rows[:, 0] == np.arange(first, first + len(rows), dtype='f4')).all()
        first += len(rows)
    assert first == ROWS
    print(f'{ROWS * WIDTH * 4 // 10**6:,} MB in {LIMIT // 10**6} MB')


if __name__ == '__main__':
    run(pathlib.Path(sys.argv[1]))
