"""Writes a declaration or a config in the form that `etpe migrate config --to` names."""

from __future__ import annotations

import dataclasses

from google.protobuf import json_format, text_format

from ..core.plan import resolve
from ..core.specs import Topology
from ..errors import ConfigError, Problem
from ..proto.codec import Config, plan_to_config
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


def python(declaration: Declaration, target: str) -> Written:
    """Returns Python source for one of `PYTHON`."""
    text, notes = (source_tf1.written(declaration) if target == 'tf1'
                   else source_tf2.written(declaration, target))
    return Written(text, tuple(notes))


def proto(config: Config, target: str) -> Written:
    """Returns a config for one of `PROTO`: equal configs give equal text."""
    if target == 'json':
        return Written(json_format.MessageToJson(config, preserving_proto_field_name=True) + '\n')
    return Written(text_format.MessageToString(config))


def config_of(declaration: Declaration) -> Config:
    """Returns the config that TF1 makes of a declaration of Python objects.

    Raises:
      ConfigError: if the batch size is not known, or for a declaration that is no plan.
    """
    sizes = declaration.sizes
    if sizes.batch_size_per_core is None or sizes.cores is None or sizes.hosts is None:
        raise ConfigError(Problem(
            'E674', declaration.where, 'a config holds the batch size and the number of cores, '
            'which this object does not say', remedy='Give a TPUEmbedding that is built, or a '
            'config of the job. Or write Python source.'))
    plan = resolve(
        [table.spec for table in declaration.tables],
        [feature.spec for feature in declaration.features],
        Topology(num_hosts=sizes.hosts, cores_per_host=sizes.cores // sizes.hosts),
        batch_size=sizes.batch_size_per_core * sizes.cores, strategy=declaration.strategy,
        mode=declaration.mode, pipelined=declaration.pipelined,
        profile_directory=declaration.profile_directory)
    return plan_to_config(plan)
