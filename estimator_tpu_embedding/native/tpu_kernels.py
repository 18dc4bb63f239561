"""Computes a TPU's embedding operations on this machine's CPU.

TensorFlow defines the operations of a TPU's embedding engine, and has kernels of them where there
is a TPU. The compiled library has kernels for the CPU. So a graph that feeds, looks up and trains
tables by these operations can be executed without a TPU, in one process.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .. import _tf
from ..errors import Problem, UnsupportedError
from . import library


def register() -> None:
    """Gives TensorFlow the kernels, for the rest of this process; a second call changes nothing.

    The engine is that of the process. ConfigureDistributedTPU makes it, with tables of zeros, in
    place of one before. All hosts of its config are in this process. Cores are numbered through
    all of them: in `device_ordinal` where ids are enqueued, and by `on_core`. In a graph, what
    sends gradients must run after what receives activations.

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


def on_core(core: int) -> Any:
    """Returns a context for the operations that receive and send in the place of a core's replica.

    The attribute `_ete_core` tells the kernels. A system of one core does not need it.

    Args:
      core: its number among the cores of all hosts, >= 0.
    """
    return _tf.with_attribute('_ete_core', core)
