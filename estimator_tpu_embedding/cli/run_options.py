"""Declares the options of `etpe run`, and finds where they end on the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from ..checkpoint.options import CheckpointOptions
from ..core.kernels import CHOICES
from ..core.specs import ID_POLICIES
from .restore_arguments import ASSUME, renames

_FLAG = {'action': 'store_true'}
_MANY = {'action': 'append', 'default': [], 'metavar': 'T'}

_GENERAL: dict[str, dict[str, Any]] = {
    '--hosts': {'type': int, 'metavar': 'H', 'help': 'emulated TPU hosts'},
    '--cores': {'type': int, 'metavar': 'C', 'help': 'cores per host'},
    '--ids': {'choices': ID_POLICIES, 'help': 'what to do with ids outside of their vocabulary, '
              'where the script does not say it'},
    '--steps': {'type': int, 'metavar': 'N', 'help': 'every call of train() of an Estimator ends '
                'after N steps at most'},
    '--tf1': {**_FLAG, 'help': 'for a script of TensorFlow 1.x: "import tensorflow" gives its '
              'names and behaviour'},
    '--contrib': {**_FLAG, 'help': 'restore the part of tf.contrib that jobs for TPUs use'},
    '--no-old-python': {**_FLAG, 'help': 'do not bring back what Python and NumPy dropped, such as '
                        'inspect.getargspec and np.float'},
    '--kernels': {'choices': CHOICES, 'help': 'the executor of tables where the script does not '
                  'say it: native (compiled kernels of this package), stock (operations of '
                  'TensorFlow), or auto (native where they are installed)'},
    '--kernel-threads': {'type': int, 'metavar': 'N', 'help': 'threads of the compiled kernels; by '
                         'default one per core'},
    '--traceback': {'choices': ('short', 'full'), 'default': 'short', 'help': 'of an error that '
                    'ends the script: the frames of the script, with those of libraries folded, '
                    'or all frames; short if not given'}}

_CHECKPOINTS: dict[str, dict[str, Any]] = {
    '--grow': {**_MANY, 'help': '* T has more rows now; those that are new begin with initial '
               'values'},
    '--drop': {**_MANY, 'help': '* T is not needed any more'},
    '--reset-slots': {**_MANY, 'help': '* the optimizer of T begins anew'},
    '--rename': {**_MANY, 'metavar': 'OLD=NEW', 'help': '* the job calls a table NEW that the '
                 'checkpoint calls OLD'},
    '--assume': {'metavar': 'ORDER', 'help': ASSUME},
    '--follow-pointer': {**_FLAG, 'help': 'restore what the file "checkpoint" names even outside '
                         'of model_dir'},
    '--strict-vocabulary': {**_FLAG, 'help': 'a vocabulary in which words have other ids than in '
                            'the checkpoint is an error, not a warning'}}

_CLUSTER: dict[str, dict[str, Any]] = {
    '--workers': {'metavar': 'ADDRESSES', 'help': 'such as 10.0.0.3:8470,10.0.0.4:8470, where '
                  '"etpe worker" runs; from-script takes the addresses that the script has for '
                  'its TPU'},
    '--processes': {'type': int, 'metavar': 'N', 'help': 'start N workers on this machine, and end '
                    'them with the script'},
    '--expose': {**_FLAG, 'help': 'servers may listen although other machines can reach this one; '
                 'only for private networks'},
    '--input-on-workers': {**_FLAG, 'help': 'each worker builds the input of its host and reads '
                           'the files, where the script does not say it'}}

_ALL = {**_GENERAL, **_CLUSTER, **_CHECKPOINTS}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Adds all options to the parser of the command."""
    cluster = parser.add_argument_group(
        'cluster', 'Processes that are the hosts of jobs; without these options all hosts are '
        'emulated in one process.')
    group = parser.add_argument_group(
        'checkpoints', 'Which differences between a checkpoint and the job are meant, where its '
        'RunConfig does not say it. T is a table as the checkpoint calls it, or parts of that '
        'name, as user_embedding. What may be given several times is marked with *.')
    for options, place in ((_GENERAL, parser), (_CLUSTER, cluster), (_CHECKPOINTS, group)):
        for name, settings in options.items():
            place.add_argument(name, **settings)


def split_at_script(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits the arguments of `run` after SCRIPT, since argparse would touch what follows.

    >>> split_at_script(['--hosts', '2', 'job.py', '--', '--hosts', '3'])
    (['--hosts', '2', 'job.py'], ['--', '--hosts', '3'])
    >>> split_at_script(['-m', 'job', '-m', 'other'])
    (['-m', 'job'], ['-m', 'other'])
    >>> split_at_script(['-mjob', 'one'])
    (['-mjob'], ['one'])
    """
    at = 0
    while at < len(arguments) and re.match('-(?!m)', arguments[at]):
        at += 1 if _ALL.get(arguments[at], _FLAG).get('action') == 'store_true' else 2
    at += 2 if arguments[at:at + 1] == ['-m'] else 1
    return list(arguments[:at]), list(arguments[at:])


def checkpoint_options(parsed: argparse.Namespace) -> CheckpointOptions:
    """Returns the options about checkpoints as a job takes them.

    Raises:
      ConfigError: if a value is illegal.
    """
    return CheckpointOptions(
        grow=parsed.grow, drop=parsed.drop, reset_slots=parsed.reset_slots,
        rename=renames(parsed.rename), assume=parsed.assume,
        follow_pointer=parsed.follow_pointer, strict_vocabulary=parsed.strict_vocabulary)
