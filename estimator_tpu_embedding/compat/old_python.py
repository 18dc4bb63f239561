"""Gives programs of older times what Python and NumPy dropped since, where nothing else is there.

Nothing that exists is changed: a module asks for a name only if it lacks it. So names that are
there today with another meaning, such as `np.bool`, stay as they are. A line tells of the first use
of each name. `distutils` comes with setuptools, which TensorFlow asks for.
"""

from __future__ import annotations

import collections.abc
import dis
import functools
import importlib.util
import inspect
import operator
import sys
import time
import types
from collections.abc import Callable
from typing import Any

from . import import_paths, old_names

ArgSpec = collections.namedtuple('ArgSpec', 'args varargs keywords defaults', module='inspect')


@functools.cache
def put_in_place(say: Callable[[str], None]) -> None:
    """Makes the old names available, once; `say` is told of each name that is used.

    >>> put_in_place(lambda line: None)
    >>> import fractions
    >>> fractions.gcd(4, -6)
    -2
    """
    for path in {name.rpartition('.')[0] for name in (*old_names.dropped(), *_OWN)}:
        import_paths.look_up_in(importlib.import_module(path),
                                functools.partial(_look_up, path, say, set()))
    if importlib.util.find_spec('imp') is None:
        import_paths.move({'imp': f'{__package__}.old_imp'})


def _look_up(module: str, say: Callable[[str], None], told: set[str], name: str) -> Any:
    """Returns an old name of a module, and says so the first time that code uses it."""
    path = f'{module}.{name}'
    if path in _OWN:
        value = _OWN[path]
    elif path in old_names.dropped():
        home, _, today = old_names.dropped()[path].rpartition('.')
        value = getattr(importlib.import_module(home), today)
    else:
        raise AttributeError(path)
    if name not in told and (user := _user()):
        told.add(name)
        say(f'old name {path}, used by {user}; --no-old-python leaves it out')
    return value


def _user() -> str:
    """Returns the file that asks for a name; `''` if it asks whether the name is there.

    It is the first file that is neither ours nor an importer's. `hasattr` and `getattr` are calls.
    """
    frame = sys._getframe(2)
    own = (__file__, import_paths.__file__)
    while frame.f_back is not None and (frame.f_code.co_filename in own
                                        or 'importlib' in frame.f_code.co_filename):
        frame = frame.f_back
    is_probe = 'CALL' in dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return '' if is_probe else frame.f_code.co_filename


def _getargspec(func: Any) -> ArgSpec:
    """Does what `inspect.getargspec` did."""
    found = inspect.getfullargspec(func)
    if found.kwonlyargs or found.annotations:
        raise ValueError('Function has keyword-only parameters or annotations, use '
                         'inspect.signature() API which can support them')
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def _formatargspec(
        args: Any, varargs: Any = None, varkw: Any = None, defaults: Any = None,
        kwonlyargs: Any = (), kwonlydefaults: Any = None, annotations: Any = None,
        formatarg: Callable[[Any], str] = str,
        formatvarargs: Callable[[Any], str] = '*{}'.format,
        formatvarkw: Callable[[Any], str] = '**{}'.format,
        formatvalue: Callable[[Any], str] = '={!r}'.format,
        formatreturns: Callable[[Any], str] = ' -> {}'.format,
        formatannotation: Callable[[Any], str] = inspect.formatannotation) -> str:
    """Returns the text of arguments, as `inspect.formatargspec` did: `(a, b=1, *c)`."""
    annotations = annotations or {}

    def text(name: Any, values: dict[Any, Any]) -> str:
        typed = f': {formatannotation(annotations[name])}' if name in annotations else ''
        return formatarg(name) + typed + (formatvalue(values[name]) if name in values else '')

    last = dict(zip(args[-len(defaults):], defaults, strict=True)) if defaults else {}
    parts = [text(name, last) for name in args]
    if varargs is not None:
        parts.append(formatvarargs(text(varargs, {})))
    elif kwonlyargs:
        parts.append('*')
    parts += [text(name, kwonlydefaults or {}) for name in kwonlyargs]
    if varkw is not None:
        parts.append(formatvarkw(text(varkw, {})))
    after = (formatreturns(formatannotation(annotations['return']))
             if 'return' in annotations else '')
    return f'({", ".join(parts)}){after}'


def _gcd(a: Any, b: Any) -> Any:
    """Returns the greatest common divisor with the sign of `b`, or of `a` if `b` is 0."""
    while b:
        a, b = b, a % b
    return a


class _Coroutine(collections.abc.Coroutine):
    """A generator that is a coroutine too. Since Python 3.12 asyncio runs no bare generator."""

    def __init__(self, generator: Any):
        self._generator = generator

    def __iter__(self) -> Any:
        return self._generator

    def __await__(self) -> Any:
        return (yield from self._generator)

    def send(self, value: Any) -> Any:
        """Goes on with a value."""
        return self._generator.send(value)

    def throw(self, *error: Any) -> Any:
        """Goes on with an error."""
        return self._generator.throw(*error)

    def close(self) -> None:
        """Ends it."""
        self._generator.close()


def _coroutine(func: Any) -> Any:
    """Makes a generator function a coroutine, as the decorator `asyncio.coroutine` did."""
    made = types.coroutine(func)
    if inspect.isgeneratorfunction(func):
        return functools.wraps(func)(lambda *args, **kwargs: _Coroutine(made(*args, **kwargs)))

    @functools.wraps(func)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        result = made(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    return awaited


_OWN: dict[str, Any] = {
    'numpy.NINF': -float('inf'), 'numpy.NZERO': -0., 'numpy.PZERO': 0.,
    'numpy.asscalar': operator.methodcaller('item'),
    'inspect.getargspec': _getargspec, 'inspect.ArgSpec': ArgSpec,
    'inspect.formatargspec': _formatargspec, 'fractions.gcd': _gcd,
    'time.clock': time.process_time, 'asyncio.coroutine': _coroutine}
