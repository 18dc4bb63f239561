"""The TF2 classes: `TPUEmbedding` over the engine of this package, and the emulated `TPUStrategy`.

Importing this module imports nothing heavy; the first use of a name imports TensorFlow.
"""

import importlib

_HOMES = {
    'TPUEmbedding': ('tpu_embedding_v2', 'TPUEmbedding'),
    'TPUStrategy': ('strategy', 'TPUStrategyV2'),
    'is_tpu_strategy': ('strategy', 'is_tpu_strategy'),
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    module, own = _HOMES[name]
    value = getattr(importlib.import_module(f'{__name__}.{module}'), own)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Returns the public names, loaded or not."""
    return sorted({*globals(), *__all__})
