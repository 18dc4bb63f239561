"""Takes a job to the other API: its tables and variables, its declaration, and proofs of both.

`check` and the sides that it takes can be imported from here, and `migrate` with what it takes.
None of them imports TensorFlow.
"""

_OF_MIGRATE = ('Choices', 'Paths', 'Target', 'migrate', 'read_map')


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used; NumPy takes a moment."""
    if name == 'check':
        from .agreement import check
        return check
    if name in ('EstimatorSide', 'KerasSide', 'LoopSide', 'Side'):
        from . import sides
        return getattr(sides, name)
    if name in _OF_MIGRATE:
        from . import carry_out, map_file
        return map_file.read if name == 'read_map' else getattr(carry_out, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
