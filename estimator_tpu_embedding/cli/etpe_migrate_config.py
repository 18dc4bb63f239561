"""Writes the tables, features and optimizers of a job as Python source for an API of TF2, or as a
config. What the API lacks becomes a comment.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from ..core.specs import Topology
from ..errors import ConfigError, Problem, counted, shown
from ..migration import declaration_text, job_declaration
from ..migration.declaration_text import PROTO, PYTHON, Written
from ..proto import reading
from ..proto.codec import Config
from . import input_argument as inputs
from .report import Line, Report, as_command, output_error, printable, write_output


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('input', metavar='INPUT', help='a file with a config or a graph, a '
                        'SavedModel, a checkpoint, a model_dir, - for standard input, or '
                        'py:module:object: an EmbeddingConfigSpec, a TPUEmbedding of TF1, or a '
                        'function that returns one')
    parser.add_argument('--to', required=True, choices=(*PYTHON, PROTO), help='TPUEmbedding of '
                        'TF2, the layer of TFRS, or the config as text')
    parser.add_argument('-o', '--output', metavar='FILE', help='a new file, instead of standard '
                        'output')
    parser.add_argument('--batch-size', metavar='N', type=int, help='samples of all cores per '
                        'step, for a py: object that does not say it')
    parser.add_argument('--hosts', metavar='H', type=int, help='hosts, with '
                        '--batch-size; 1')
    parser.add_argument('--cores', metavar='C', type=int, help='cores of each host, '
                        'with --batch-size; 1')
    parser.add_argument('--strict', action='store_true', help='an option without a counterpart '
                        'is an error')
    as_command(parser, _report)


def _report(parsed: argparse.Namespace) -> Report:
    if parsed.output is not None and os.path.lexists(parsed.output):
        raise output_error(parsed.output, 'it must be a new file', 'one that exists')
    if parsed.batch_size is None and (parsed.hosts, parsed.cores) != (None, None):
        raise ConfigError(Problem(
            'E674', '--hosts and --cores', 'they must come with a batch size', 'none',
            'Add --batch-size N, the samples of all cores per step.'))
    where, written = _written(parsed)
    problems = [note.problem for note in written.notes if note.code]
    if parsed.strict and problems:
        raise ConfigError(*problems)
    if parsed.output is not None:
        write_output(parsed.output, written.text.encode())
    return Report(
        _blocks(parsed, written), {
            'to': parsed.to, 'where': where, 'text': written.text, 'file': parsed.output,
            'notes': [note._asdict() for note in written.notes]})


def _blocks(parsed: argparse.Namespace, written: Written) -> list[Line | str]:
    if parsed.output is None:
        return [written.text]
    lines = [Line(f'{note.where}: {note}  ({note.code or "remark"})',
                  'warn' if note.code else '') for note in written.notes]
    number = len(written.notes)
    return [*lines, Line(f'{parsed.output}: written, with {counted(number, "note")}', 'good')]


def _written(parsed: argparse.Namespace) -> tuple[str, Written]:
    """Returns the place of the input, and what it declares in the form of the target."""
    source, target, declared = parsed.input, parsed.to, None
    where = reading.label(source)
    if inputs.is_python(source):
        with contextlib.redirect_stdout(sys.stderr):  # The output is a file of Python.
            from ..compat.install import install
            install()  # The names that TensorFlow removed, before the user's module is imported.
            value = inputs.python_object(source)
            declared = job_declaration.of_object(value, where)
        if declared is None and not inputs.holds_config(value):
            raise ConfigError(Problem(
                'E675', where, 'the object must declare tables and features', shown(
                    type(value).__qualname__), 'Name an EmbeddingConfigSpec, a config, or a '
                'function that returns one.'))
    if declared is None:
        config, others, where = _chosen(
            inputs.from_object(value, where) if inputs.is_python(source) else inputs.load(source))
        if target == PROTO and parsed.batch_size is None:  # Also one that nothing can declare.
            return where, declaration_text.of_config(config)
        declared = job_declaration.of_config(config, where, others)
    if parsed.batch_size is not None:
        hosts, cores = (1 if one is None else one for one in (parsed.hosts, parsed.cores))
        declared = declared.sized(
            parsed.batch_size, Topology(num_hosts=hosts, cores_per_host=cores))
    return where, declaration_text.written(declared, target)


def _chosen(found: list[reading.Source]) -> tuple[Config, list[Config], str]:
    """Returns the config of the training, the others, and the place of the first."""
    configs = [(one.where, one.config) for one in found]
    training = [one for one in configs if one[1].mode != Config.INFERENCE] or configs[:1]
    if len(training) > 1:
        raise ConfigError(*[Problem(
            'E676', printable(where), 'the input must hold one config for training',
            f'{len(training)}', 'Save one of them into a file.') for where, _ in training])
    where, config = training[0]
    return config, [other for _, other in configs if other is not config], where
