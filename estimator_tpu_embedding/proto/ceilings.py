"""Limits how much all configs of one source may hold, before any of them is parsed.

A table or feature takes some 100 bytes of memory even if it is empty, and a few microseconds in
each command. A graph may carry many configs, so the limits are on their sum.
"""

from __future__ import annotations

from ..core import limits
from ..errors import Problem, UnreadableConfigError
from .codec import Config
from .wire import LENGTH, MAX_FIELDS, VARINT, Malformed, Wire

MAX_BYTES = 64 * 2**20
"""Bytes of all configs of one source."""
MAX_SHAPE = 8
"""Numbers in the `input_shape` of a feature; TF1 writes one or two, TF2 the rank of the samples."""

_LONGEST_VARINT = 10
_TABLE, _FEATURE, _INPUT_SHAPE = 1, 10, 3
_SHAPE = {1: LENGTH, **dict.fromkeys(range(2, 8), VARINT), 9: LENGTH, 10: LENGTH, 11: LENGTH}


class Allowance:
    """The rest of the limits that the configs of one source have not used up.

    Args:
      what: name of the source in messages: `'a config'`, `'all configs of a graph'`.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._tables = self._features = self._bytes = 0
        self._fields_left = MAX_FIELDS

    def admit(self, wire: Wire, where: str) -> None:
        """Counts a serialized config.

        Raises:
          UnreadableConfigError: if a limit is exceeded.
          Malformed: if the message is no config.
        """
        wire.left = self._fields_left
        known = False
        for number, kind, span in wire.fields(wire.whole()):
            if _SHAPE.get(number, kind) != kind:
                raise Malformed('neither a TPUEmbeddingConfiguration nor a graph')
            known |= number in _SHAPE
            if number in (_TABLE, _FEATURE):
                self._count(number == _TABLE, number == _FEATURE, where)
            if number == _FEATURE and span[1] - span[0] > MAX_SHAPE * _LONGEST_VARINT:
                _check_long_feature(wire, span, where)
        if not known:
            raise Malformed('neither a TPUEmbeddingConfiguration nor a graph')
        self._fields_left = wire.left
        self._bytes += len(wire.content)
        if self._bytes > MAX_BYTES:
            raise _too_much('E481', where, f'{self._what} must have at most {MAX_BYTES:,} bytes',
                            f'{self._bytes:,}')

    def _count(self, tables: int, features: int, where: str) -> None:
        self._tables += tables
        self._features += features
        for kind, count, most in (('tables', self._tables, limits.MAX_TABLES),
                                  ('features', self._features, limits.MAX_FEATURES)):
            if count > most:
                raise _too_much('E487', where, f'{self._what} must have at most {most:,} {kind}',
                                'more')


def check_parsed(config: Config, where: str) -> None:
    """Refuses a parsed config that exceeds a limit; only this function counts text.

    Raises:
      UnreadableConfigError: if a limit is exceeded.
    """
    for kind, parts, most in (('tables', config.table_descriptor, limits.MAX_TABLES),
                              ('features', config.feature_descriptor, limits.MAX_FEATURES)):
        if len(parts) > most:
            raise _too_much('E487', where, f'a config must have at most {most:,} {kind}',
                            f'{len(parts):,}')
    for feature in config.feature_descriptor:
        check_shape(len(feature.input_shape), where)


def check_shape(count: int, where: str) -> None:
    """Refuses a feature with too many numbers in its `input_shape`.

    Raises:
      UnreadableConfigError: if `count` exceeds `MAX_SHAPE`.
    """
    if count > MAX_SHAPE:
        raise _too_much('E487', where, 'the input_shape of a feature must have at most '
                        f'{MAX_SHAPE} numbers', 'more')


def _check_long_feature(wire: Wire, span: tuple[int, int], where: str) -> None:
    """Refuses a shape that would take much memory; shorter shapes are counted after parsing."""
    single = packed = 0
    for number, kind, (start, end) in wire.fields(span):
        if number == _INPUT_SHAPE:
            single += kind == VARINT
            packed += end - start if kind == LENGTH else 0
            check_shape(single + -(-packed // _LONGEST_VARINT), where)


def _too_much(code: str, where: str, rule: str, got: str) -> UnreadableConfigError:
    return UnreadableConfigError(Problem(code, where, rule, got))
