"""Takes a job to the other API: its tables and variables, its declaration, and proofs of both.

`checkpoint` in the names of modules means files on disk, `source` Python text. `check`, and the
sides that it takes, can be imported from here. None of them imports TensorFlow.
"""


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used; NumPy takes a moment."""
    if name == 'check':
        from .agreement.check import check
        return check
    if name in ('EstimatorSide', 'KerasSide', 'LoopSide', 'Side'):
        from .agreement import sides
        return getattr(sides, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
