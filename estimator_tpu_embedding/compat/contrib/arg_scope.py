"""Defines `arg_scope`: defaults for the arguments of functions, within a `with` block.

>>> @add_arg_scope
... def layer(x, width=1, name='a'):
...     return x, width, name
>>> with arg_scope([layer], width=8):
...     layer(0), layer(0, width=2)
((0, 8, 'a'), (0, 2, 'a'))
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Scope = dict[str, dict[str, Any]]  # by the name of a function, its defaults


_current: contextvars.ContextVar[Scope] = contextvars.ContextVar('arg_scope', default={})
"""Of every thread by itself: replicas are built by a thread each, which begins with a copy."""


def add_arg_scope(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function, so that `arg_scope` may give defaults to its arguments."""
    @functools.wraps(func)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_current.get().get(_key(scoped), {}), **kwargs})

    vars(scoped)['_takes_arg_scope'] = True
    return scoped


@contextlib.contextmanager
def arg_scope(list_ops_or_scope: Sequence[Callable[..., Any]] | Mapping[str, dict[str, Any]],
              **kwargs: Any) -> Iterator[Scope]:
    """Gives defaults to the functions of a list, in addition to those of enclosing scopes.

    Args:
      list_ops_or_scope: decorated functions, or the `scope` of an earlier
        `with arg_scope(...) as scope`, which then replaces the enclosing scopes.
      **kwargs: the defaults.

    Raises:
      TypeError: for any other first argument.
      ValueError: for functions that are not decorated, or defaults beside an earlier scope.
    """
    before = _current.get()
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise ValueError('An earlier scope takes no defaults beside it')
        now = dict(list_ops_or_scope)
    elif isinstance(list_ops_or_scope, (list, tuple)):
        now = dict(before)
        for func in list_ops_or_scope:
            if not has_arg_scope(func):
                raise ValueError(f'{func} is not decorated with @add_arg_scope')
            now[_key(func)] = {**now.get(_key(func), {}), **kwargs}
    else:
        raise TypeError('list_ops_or_scope must be a list of functions or an earlier scope')
    token = _current.set(now)
    try:
        yield now
    finally:
        _current.reset(token)


def has_arg_scope(func: Callable[..., Any]) -> bool:
    """Whether a function was decorated."""
    return hasattr(func, '_takes_arg_scope')


def arg_scoped_arguments(func: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names of a decorated function's arguments that have defaults."""
    return tuple(name for name, one in inspect.signature(func).parameters.items()
                 if one.default is not inspect.Parameter.empty)


def current_arg_scope() -> Scope:
    """Returns the defaults in force."""
    return dict(_current.get())


def _key(func: Callable[..., Any]) -> str:
    return f'{func.__module__}.{func.__qualname__}'
