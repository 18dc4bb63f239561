"""The codes E66x: rows of tables that leave a checkpoint, or come into one."""

from __future__ import annotations

ENTRIES: dict[str, tuple[str, str, str]] = {
    'E661': ('directory where rows or a checkpoint cannot be put',
             'An export needs a directory that is empty or missing, and an import one without '
             'checkpoints. The disk must have room for all rows, which is known before. Nothing '
             'is ever overwritten.',
             'Name another directory, or make room. A folder .rows-stage is left by an export '
             'that did not end: if none runs, remove it.'),
    'E662': ('table that cannot be exported',
             'The checkpoint has no table of that name, or several that the name fits.',
             'Use a name that the message lists, or give more parts of the name.'),
    'E663': ('package for Parquet missing',
             'Files of Parquet are read and written by the package pyarrow, which is an extra.',
             'Install it with pip install pyarrow, or use npy or safetensors.'),
    'E664': ('rows.json that cannot be read',
             'The file rows.json beside exported rows is damaged, was edited, or a newer version '
             'of this package wrote it.',
             'Export again.'),
    'E665': ('file of rows that cannot be used',
             'A file is missing, is no regular file, was cut off or changed, or does not hold '
             'plain numbers. Pickled Python objects are never read.',
             'Write the file anew, as the message says.'),
    'E666': ('rows of another type or shape',
             'Rows must be a matrix of float32 with a row for each id, and ids a vector of '
             'integers. All files of a table must have one width.',
             'Convert the array as the message says. --to-float32 rounds float64, and takes '
             'float16 and bfloat16.'),
    'E667': ('ids that are missing, twice or too large',
             'A whole table has one row for each id from 0 on. Otherwise an id would get the row '
             'of another id, or none.',
             'Correct the ids. To replace only some rows of a checkpoint, name it by --base.'),
    'E668': ('numbers that are not finite in rows to be imported',
             'Some rows hold NaN or infinity, or become infinite as float32.',
             'Correct these rows, or leave them out.'),
    'E669': ('arguments for rows that do not fit, or say too little',
             'The arguments of etpe checkpoint export or import do not fit together, or do not '
             'fit the checkpoint that --base names. Or a file has integers that may be the ids of '
             'its rows, and no argument says whether they are.',
             'Do what the message proposes.'),
}
