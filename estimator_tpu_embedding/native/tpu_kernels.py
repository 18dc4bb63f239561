"""Computes a TPU's embedding operations on this machine's CPU.

TensorFlow defines the operations of a TPU's embedding engine, and has kernels of them where there
is a TPU. The compiled library has kernels for the CPU. So a graph that feeds, looks up and trains
tables by these operations can be executed without a TPU, in one process.
"""

from __future__ import annotations

import ctypes

from ..errors import Problem, UnsupportedError
from . import library


def register() -> None:
    """Gives TensorFlow the kernels, for the rest of this process; a second call changes nothing.

    The engine is that of the process. ConfigureDistributedTPU makes it, and computes once more
    from the values that are loaded then. All hosts of its config are in this process. Cores are
    numbered through all of them: in `device_ordinal` where ids are enqueued, and in the attribute
    `_ete_core` of RecvTPUEmbeddingActivations and SendTPUEmbeddingGradients, which one core does
    not need. In a graph, what sends gradients must run after what receives activations.

    Raises:
      UnsupportedError: if the library cannot be used, or this TensorFlow may have such kernels.
    """
    if library.load() is None:
        raise UnsupportedError(Problem(
            'E941', 'kernels of a TPU\'s operations', 'the compiled library must be there',
            library.why_not(), library.remedy()))
    call = ctypes.CDLL(str(library.PATH)).ete_register_tpu_kernels
    call.restype = ctypes.c_char_p
    if found := call().decode():
        raise UnsupportedError(Problem(
            'E941', 'kernels of a TPU\'s operations', 'this TensorFlow must have none of its own',
            f'{found} may have one', 'Run the graph on the TPU of this machine.'))
