"""Takes a job to the other API: its tables and variables, its declaration, and proofs of both.

`check` and the sides that it takes can be imported from here. They import no TensorFlow.
"""


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used; NumPy takes a moment."""
    if name == 'check':
        from .agreement import check
        return check
    if name in ('EstimatorSide', 'KerasSide', 'LoopSide', 'Side'):
        from . import sides
        return getattr(sides, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
