"""The arguments that say what a migration of a checkpoint does, and the plan that follows."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator

from ...checkpoint.bundle import Bundle
from ...checkpoint.options import VERIFY, CheckpointOptions
from ...core.names import name_problems
from ...errors import ConfigError
from ...migration import contents, from_tf2, map_file, moves, to_tf2
from ...migration.contents import KERAS, KINDS, MIDLEVEL, TF1, Contents, Target
from ...migration.moves import Choices
from ..stored import opened

OBJECT, OPTIMIZER = 'embedding', 'optimizer'


def configure(parser: argparse.ArgumentParser, *, needs_target: bool) -> None:
    """Adds the arguments that `read` reads."""
    parser.add_argument('--to', required=needs_target, choices=KINDS, help='tf2: TPUEmbedding of '
                        'tf.tpu.experimental.embedding; tfrs: the layer of TFRS; tf1: TPUEstimator')
    configure_paths(parser)
    parser.add_argument('--source-path', metavar='PATH', help='where SRC has them, if it is a '
                        'checkpoint of TF2 with another path than --object-path')
    parser.add_argument('--slots', choices=(KERAS, MIDLEVEL), help='who makes the slots of '
                        'tables in the program of TF2: midlevel, the default, is the '
                        'TPUEmbedding; keras is a Keras optimizer')
    parser.add_argument('--like', metavar='CHECKPOINT', help='a checkpoint that the new program of '
                        'TF2 has saved, or its folder: its objects are taken as they are, and get '
                        'the values; paths and slots that are not given are those in it')
    parser.add_argument('--order', metavar='ORDER', help='how --to tf1 orders rows: "div", the '
                        'default, or "mod:H" for H hosts')
    parser.add_argument('--step', type=int, metavar='N', help='of a checkpoint that does not '
                        'say its step')
    parser.add_argument('--drop-rest', action='store_true', help='leave out variables that '
                        'nothing names')
    parser.add_argument('--drop-slots', action='store_true', help='leave out slots that --to has '
                        'no place for')


def configure_paths(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments about the names of variables and the objects of a program of TF2."""
    parser.add_argument('--map', metavar='FILE', help='a text file with the new names of '
                        'variables: etpe docs migrating')
    parser.add_argument('--object-path', metavar='PATH', help='where the checkpoint of TF2 has '
                        f'the TPUEmbedding, or the layer of TFRS; {OBJECT} if left out')
    parser.add_argument('--optimizer-path', metavar='PATH', help='where it has the Keras '
                        f'optimizer; {OPTIMIZER} if left out')


def read(parsed: argparse.Namespace, prefix: str, given: CheckpointOptions
         ) -> tuple[Contents, Target, Choices]:
    """Reads the map and a checkpoint; arguments that do not apply end the command.

    Raises:
      ConfigError: E651 or E653.
      IncompatibleCheckpointError: E652.
    """
    for argument, why in _unused(parsed, contents.is_tf2(Bundle.open(prefix))):
        parsed.refuse(f'argument {argument}: {why}')
    map, target, like = read_map(parsed), _target(parsed), _like(parsed, given)
    if like is not None:
        target = to_tf2.located(
            like, target, path=parsed.object_path is None, slots=parsed.slots is None,
            optimizer=parsed.optimizer_path is None)
    return moves.read(prefix, paths(parsed), map, given), target, Choices(
        map=map, drop_rest=parsed.drop_rest, drop_slots=parsed.drop_slots, step=parsed.step,
        like=like)


def _like(parsed: argparse.Namespace, given: CheckpointOptions) -> Bundle | None:
    """Opens the checkpoint of `--like`."""
    path = getattr(parsed, 'like', None)
    if path is None:
        return None
    from ...checkpoint import recover
    quick = dataclasses.replace(given, verify=VERIFY[1])
    found = Bundle.open(opened.chosen(path, quick).prefix)
    recover.verify(found.prefix, quick)
    if not contents.is_tf2(found):
        parsed.refuse('argument --like: it must be a checkpoint of TF2, such as dir/ckpt-1')
    return found


def read_map(parsed: argparse.Namespace) -> map_file.Map:
    """Returns the map of `--map`; an empty one without it."""
    return map_file.read(parsed.map) if parsed.map is not None else map_file.Map()


def paths(parsed: argparse.Namespace) -> from_tf2.Paths:
    """Returns where a checkpoint of TF2 that is read has its objects."""
    given = getattr(parsed, 'source_path', None)
    path, argument = (parsed.object_path, '--object-path') if given is None else (
        given, '--source-path')
    return from_tf2.Paths(_path(parsed, argument, path, OBJECT),
                          _path(parsed, '--optimizer-path', parsed.optimizer_path, OPTIMIZER))


def _path(parsed: argparse.Namespace, argument: str, given: str | None, default: str) -> str:
    """Returns a path; the root has the path `''`."""
    path = default if given is None else given.strip('/')
    for problem in name_problems('path', path) if path else ():
        parsed.refuse(f'argument {argument}: {dataclasses.replace(problem, code="").rule}')
    return path


def _unused(parsed: argparse.Namespace, is_tf2: bool) -> Iterator[tuple[str, str]]:
    """Yields each argument that means nothing here, with the reason."""
    to_tf1 = parsed.to == TF1
    rules = (
        ('order', not to_tf1, 'only --to tf1 has an order'),
        ('like', to_tf1, 'the graph of objects is one of TF2'),
        ('slots', to_tf1, 'TF1 has one kind of slots'),
        ('object_path', to_tf1 and not is_tf2, 'neither SRC nor --to tf1 has objects'),
        ('optimizer_path', to_tf1 and not is_tf2, 'neither SRC nor --to tf1 has objects'),
        ('source_path', not is_tf2, 'SRC is a checkpoint of TF1, which has no objects'),
        ('object_path', to_tf1 and parsed.source_path is not None,
         '--source-path says where SRC has them, and TF1 has no objects'),
        ('assume', is_tf2, 'SRC is a checkpoint of TF2, whose rows are in the order of ids'),
        ('step', not 0 <= (parsed.step or 0) < 2**63, 'it must be >= 0, and below 2**63'))
    for name, is_idle, why in rules:
        if is_idle and getattr(parsed, name, None) is not None:
            yield f'--{name.replace("_", "-")}', why


def _target(parsed: argparse.Namespace) -> Target:
    strategy, hosts = _order(parsed)
    return Target(
        kind=parsed.to,
        object_path=_path(parsed, '--object-path', parsed.object_path, OBJECT),
        optimizer_path=_path(parsed, '--optimizer-path', parsed.optimizer_path, OPTIMIZER),
        slots=parsed.slots or MIDLEVEL,
        strategy=strategy, hosts=hosts)


def _order(parsed: argparse.Namespace) -> tuple[str, int]:
    """Returns strategy and hosts of `--order`, which has the form of `--assume`."""
    try:
        order = CheckpointOptions(assume=parsed.order).assumed_order()
    except ConfigError as error:
        parsed.refuse(f'argument --order: {error.problems[0].rule}')
        raise
    return order or (Target(kind=TF1).strategy, Target(kind=TF1).hosts)
