"""Refuses infeed, outfeed and loops of a TPU as soon as a script builds them.

TensorFlow has the operations, but no CPU kernels for them. It would report this only when they
run, or not at all. A graph that is imported only to be looked at may hold them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from .. import _tf
from ..errors import ConfigError, Problem, UnsupportedError
from ..runner import towers
from . import refused, roads

_REMEDY = ('Give a step the tensors of an iterator as inputs of tf.tpu.shard, fetch what it '
           'returns, and call session.run for each step.')


def refuse() -> None:
    """Replaces the functions that build such operations, in every module that has them."""
    generated, handwritten = _tf.generated_tpu_ops_module(), _tf.tpu_ops_module()
    for operation in refused.FEED_OPERATIONS:
        function = next(name for name in vars(generated)
                        if name.replace('_', '') == operation.lower() and name != operation)
        for module, name in ((generated, function), (handwritten, function),
                             (generated, operation)):
            setattr(module, name, _refused(operation, getattr(module, name)))
        for root in roads.ROOTS:
            roads.put(roads.joined(root, 'raw_ops'), operation, getattr(generated, operation))
    loops = _tf.modules_of_contrib()['training_loop']
    for name in ('while_loop', 'repeat'):
        setattr(loops, name, _on_one_core(getattr(loops, name)))


def _refused(operation: str, function: Callable[..., Any]) -> Callable[..., NoReturn]:
    """Returns a function that raises an error instead of building an operation."""
    @functools.wraps(inspect.unwrap(function))
    def refuse_it(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(_problem(operation))

    return refuse_it


def _problem(where: str) -> Problem:
    return Problem('E925', where, 'there is no infeed and no outfeed here: the emulated cores read '
                   'and give tensors of the graph', remedy=_REMEDY)


def _on_one_core(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of `training_loop` that refuses loops that cannot run here."""
    original = inspect.unwrap(function)

    @functools.wraps(original)
    def build(*args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
        if given.get('infeed_queue') is not None:
            raise UnsupportedError(_problem(f'training_loop.{original.__name__}'))
        try:
            return original(*args, **kwargs)
        except ConfigError as error:
            if error.code != 'E456':
                raise
            raise UnsupportedError(Problem(
                'E926', f'training_loop.{original.__name__}', 'a loop within the graph trains on '
                'one core only', f'{towers.number_of_cores()} cores', 'Leave the loop out: call '
                'session.run for each step, in a loop of Python.')) from None

    return build
