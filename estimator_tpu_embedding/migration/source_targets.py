"""Writes a declaration or a config in the form that `etpe migrate config --to` names."""

from __future__ import annotations

import dataclasses

from google.protobuf import json_format, text_format

from ..errors import ConfigError, Problem
from ..proto.codec import Config
from . import source_tf1, source_tf2
from .source_facts import Declaration, Note

PYTHON = ('tf2', 'tfrs', 'tf1')
PROTO = ('textproto', 'json')


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """A declaration in another form.

    Attributes:
      text: content of a file.
      notes: what a maintainer must know of it.
    """

    text: str
    notes: tuple[Note, ...] = ()


def written(declaration: Declaration, target: str) -> Written:
    """Returns a declaration in one of the forms of `PYTHON` and `PROTO`.

    Raises:
      ConfigError: for a config that is not known.
    """
    return (_python if target in PYTHON else _proto)(declaration, target)


def _python(declaration: Declaration, target: str) -> Written:
    text, notes = (source_tf1.written(declaration) if target == 'tf1'
                   else source_tf2.written(declaration, target))
    return Written(text, tuple(notes))


def _proto(declaration: Declaration, target: str) -> Written:
    config = declaration.config
    if config is None:
        raise ConfigError(Problem(
            'E674', declaration.where, 'a config holds the batch size and the number of cores, '
            'which this object does not say', remedy='Give a TPUEmbedding that is built, or a '
            'config of the job. Or write Python source.'))
    return of_config(config, target)


def of_config(config: Config, target: str) -> Written:
    """Returns a config in one of the forms of `PROTO`: equal configs give equal text."""
    if target == 'json':
        return Written(json_format.MessageToJson(config, preserving_proto_field_name=True) + '\n')
    return Written(text_format.MessageToString(config))
