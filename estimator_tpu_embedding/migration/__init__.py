"""Takes a job to the other API: its tables and variables, its declaration, and proofs of both.

`check` and the sides that it takes can be imported from here, and `migrate` with what it takes.
None of them imports TensorFlow.
"""

_OF_MIGRATE = ('Choices', 'Paths', 'Target', 'migrate', 'read_map')


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used; NumPy takes a moment."""
    if name == 'check':
        from .check_jobs import check
        return check
    if name in ('EstimatorSide', 'KerasSide', 'LoopSide', 'Side'):
        from . import job_entry_points
        return getattr(job_entry_points, name)
    if name in _OF_MIGRATE:
        from . import map_file, migrate_checkpoint
        return map_file.read if name == 'read_map' else getattr(migrate_checkpoint, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
