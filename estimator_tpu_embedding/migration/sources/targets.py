"""Writes a declaration or a config in the form that `etpe migrate config --to` names."""

from __future__ import annotations

import dataclasses

from google.protobuf import json_format, text_format

from ...core.plan import resolve
from ...core.specs import Topology
from ...errors import ConfigError, Problem
from ...proto.codec import Config, plan_to_config
from . import tf1, tf2
from .facts import JOB, LOST, Declaration, Note
from .text import comment

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
    text, notes = (tf1.written(declaration) if target == 'tf1'
                   else tf2.written(declaration, target))
    return Written(text, tuple(notes))


def _proto(declaration: Declaration, target: str) -> Written:
    """Returns the config of an object, and notes of what no config holds."""
    made = of_config(_config_of(declaration), target)
    notes = [note for note in declaration.notes if note.code]
    if declaration.multiplier:
        notes.append(Note(where=JOB, code=LOST, fact='A config has no function that multiplies '
                          f'gradients (experimental_gradient_multiplier_fn, '
                          f'{declaration.multiplier})'))
    said = [line for note in notes for line in comment(f'{note.where}: {note}')]
    if target == 'json' or not said:  # JSON has no comments.
        return dataclasses.replace(made, notes=tuple(notes))
    return Written('\n'.join([*said, made.text]), tuple(notes))


def _config_of(declaration: Declaration) -> Config:
    if declaration.config is not None:
        return declaration.config
    sizes = declaration.sizes
    if declaration.origin != 'TF1' or sizes.batch_size_per_core is None or not (
            sizes.cores and sizes.hosts):
        raise ConfigError(Problem(
            'E674', declaration.where, 'a config holds the batch size and the number of cores, '
            'which this object does not say', remedy='State them for a spec of TPUEstimator, as '
            'in --batch-size 512 --hosts 1 --cores 8. Build a TPUEmbedding of TF2 before, or write '
            'it with --to tf1 and take that EMBEDDING_CONFIG_SPEC.'))
    plan = resolve(
        [table.spec for table in declaration.tables],
        [feature.spec for feature in declaration.features],
        Topology(num_hosts=sizes.hosts, cores_per_host=sizes.cores // sizes.hosts),
        batch_size=sizes.batch_size_per_core * sizes.cores, strategy=declaration.strategy,
        pipelined=declaration.pipelined, profile_directory=declaration.profile_directory)
    return plan_to_config(plan)


def of_config(config: Config, target: str) -> Written:
    """Returns a config in one of the forms of `PROTO`: equal configs give equal text."""
    if target == 'json':
        return Written(json_format.MessageToJson(config, preserving_proto_field_name=True) + '\n')
    # The default of `as_utf8` depends on protobuf, and would let names steer a terminal.
    return Written(text_format.MessageToString(config, as_utf8=False))
