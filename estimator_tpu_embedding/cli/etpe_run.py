"""Runs a script as "python SCRIPT ARGS..." would, a module as "python -m MODULE" would, or the code
cells of a notebook in order, with the names in place that TensorFlow removed, on an emulated TPU
system of H hosts with C cores each. With neither size given the system has one core, or as many as
the script's TPUConfig(num_shards=...) says. What follows SCRIPT is handed to it untouched. The exit
status is that of the script.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import site
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from ..checkpoint.options import CheckpointOptions, renames
from ..core.specs import BACKENDS, ID_POLICIES, KERNELS, Kernels, System
from ..core.table_memory import TableMemory
from ..errors import ConfigError, EteError

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
    '--kernels': {'choices': KERNELS, 'help': 'the executor of tables where the script does not '
                  'say it: native (compiled kernels of this package), stock (operations of '
                  'TensorFlow), or auto (native where they are installed)'},
    '--kernel-threads': {'type': int, 'metavar': 'N', 'help': 'threads of the compiled kernels; by '
                         'default one per core'},
    '--table-dir': {'metavar': 'DIR', 'help': 'have tables that do not fit into --resident in '
                    'files without names on the disk of DIR'},
    '--resident': {'metavar': 'SIZE', 'help': 'memory for tables with --table-dir, such as 16GiB'},
    '--backend': {'choices': BACKENDS, 'default': 'emulated', 'help': 'tpu runs '
                  'TPUEstimators on a real TPU; by default a TPU is emulated'},
    '--graph-only': {'metavar': 'DIR', 'help': 'with --backend tpu, build the graphs for H hosts '
                     'of C cores, write them to DIR and run nothing'}}

_CHECKPOINTS: dict[str, dict[str, Any]] = {
    '--grow': {**_MANY, 'help': '* T has more rows now; those that are new begin with initial '
               'values'},
    '--drop': {**_MANY, 'help': '* T is not needed any more'},
    '--reset-slots': {**_MANY, 'help': '* the optimizer of T begins anew'},
    '--rename': {**_MANY, 'metavar': 'OLD=NEW', 'help': '* the job calls a table NEW that the '
                 'checkpoint calls OLD'},
    '--assume': {'metavar': 'ORDER', 'help': '"div", or "mod:H" for H hosts: how rows are ordered '
                 'in checkpoints that do not say it'},
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


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.usage = 'etpe run [OPTIONS] (SCRIPT | NOTEBOOK.ipynb | -m MODULE) [ARGS...]'
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
    parser.add_argument('-m', dest='module', metavar='MODULE', help='run a module or package')
    parser.add_argument('script', metavar='SCRIPT', nargs='?', help='path of the script or '
                        'notebook; its own flags go after it')
    parser.set_defaults(command=run, refuse=parser.error)


def run(parsed: argparse.Namespace) -> int:
    """Runs the script. Messages of the tool itself go to standard error."""
    if parsed.module is None and parsed.script is None:
        parsed.refuse('the following arguments are required: SCRIPT')
    problems = [*System.sized(parsed.hosts, parsed.cores).topology.problems(),
                *Kernels(threads=parsed.kernel_threads).problems('--kernel-threads')]
    if (parsed.table_dir is None) != (parsed.resident is None):
        return _refuse('--table-dir and --resident need each other')
    if parsed.table_dir is not None:
        problems += _table_memory(parsed).problems('--table-dir')
    if problems:
        return _refuse('\n'.join(map(str, problems)))
    if parsed.steps is not None and parsed.steps < 1:
        return _refuse(f'--steps must be at least 1, not {parsed.steps}')
    if parsed.script is not None and not os.path.exists(parsed.script):
        return _refuse(f'cannot find the script {parsed.script!r}')
    try:
        options = checkpoint_options(parsed)
    except ConfigError as error:
        return _refuse(str(error))
    from ..compat import script
    directory = os.getcwd()  # A notebook runs in its own folder.
    script.put_folder_first(parsed.script if parsed.module is None else None)
    try:
        program = _prepared(parsed, options)
        from ..compat import tpu_functions
        tpu_functions.contact_workers()
    except EteError as error:
        return _refuse(str(error))
    return _executed(program, parsed, directory)


def _executed(program: Any, parsed: argparse.Namespace, directory: str) -> int:
    """Runs the program, and prints totals and the error that ended it.

    An error comes last, since people look at the end. A `BaseException` that is no `Exception`
    ends this process as any other process.
    """
    from ..compat import console, environment, hints, script
    from ..runner import progress
    path = os.path.abspath(program.file)  # The program may change its folder.
    console.log_each_line_once(_libraries(path))
    failed: Exception | None = None
    try:
        script.run(program, parsed.rest)
    except Exception as error:
        if (hints.is_of_old_protoc(error) and not progress.reports()
                and environment.choose_protobuf_in_python()):
            _say('some code was made by a protoc before 3.19, so the script begins anew with '
                 f'{environment.PROTOBUF}=python, which is slower')
            script.begin_anew(directory)
        failed = error
    finally:
        _say(f'in all: {progress.totals()}')
    if failed is None:
        return 0
    _show(failed, script.frames_of(failed, program))
    if hints.missing_name(failed) or isinstance(failed, NameError):
        _say(f'"etpe doctor {path}" says of each name that is gone what to use instead')
    return 1


def _prepared(parsed: argparse.Namespace, options: CheckpointOptions) -> Any:
    """Prepares the process; returns the `compat.script.Program` that the arguments name."""
    from ..compat import console, environment, script
    from ..compat.install import install
    environment.prepare()  # Before TensorFlow is imported.
    if parsed.workers or parsed.processes:
        environment.hide_warnings_of_tensorflow()
    with console.quiet_start():
        from ..runner import progress
        progress.send_announcements_to(_say)
        install(parsed.hosts, parsed.cores, parsed.ids, steps=parsed.steps,
                contrib=parsed.contrib, tf1=parsed.tf1, checkpoint=options,
                kernels=parsed.kernels, kernel_threads=parsed.kernel_threads,
                workers=parsed.workers, processes=parsed.processes, expose=parsed.expose,
                input_on_workers=parsed.input_on_workers,
                old_python=not parsed.no_old_python, backend=parsed.backend,
                graph_only=parsed.graph_only,
                table_memory=None if parsed.table_dir is None else _table_memory(parsed))
    if parsed.module is not None:
        return script.module(parsed.module)
    if parsed.script.lower().endswith('.ipynb'):
        if environment.set_colab_address():
            _say(f'{environment.COLAB} is set, as it is in a notebook with a TPU')
        return script.notebook_program(parsed.script, _say)
    return script.script(parsed.script)


def _table_memory(parsed: argparse.Namespace) -> TableMemory:
    return TableMemory(os.path.abspath(parsed.table_dir), parsed.resident)


def _libraries(program: str) -> Callable[[str], bool]:
    """Returns a function that says of a file whether it is of a library, and not of the job.

    Files beside the program belong to the job, even among the libraries.
    """
    of_the_job = os.path.join(os.path.dirname(program), '')
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = {package, *site.getsitepackages(), site.getusersitepackages(), *(
        sysconfig.get_path(kind) for kind in ('stdlib', 'platstdlib', 'purelib', 'platlib'))}
    roots = tuple(os.path.join(folder, '') for folder in folders)
    return lambda file: file.startswith(roots) and not file.startswith(of_the_job)


def _show(error: Exception, frames: TracebackType | None) -> None:
    """Prints an error of the program, and beneath its message a flag that might have helped."""
    from ..compat.hints import flag_that_helps
    hint = flag_that_helps(error)
    if hint and f'[etpe] {hint}' not in getattr(error, '__notes__', ()):
        error.add_note(f'[etpe] {hint}')
    error = error.with_traceback(frames)
    if sys.excepthook is sys.__excepthook__:  # It would not know the lines of a notebook.
        _to_stderr(''.join(traceback.format_exception(error)).rstrip())
        return
    with contextlib.suppress(OSError, ValueError):  # Where standard error is closed or broken.
        sys.excepthook(type(error), error, frames)


def _say(line: str) -> None:
    _to_stderr(f'[etpe] {line}')


def _refuse(reason: str) -> int:
    _to_stderr(f'etpe run: {reason}')
    return 2


def _to_stderr(line: str) -> None:
    if sys.stderr is not None:  # A process that was started without one has none.
        with contextlib.suppress(OSError, ValueError):  # The script may have closed it.
            sys.stderr.write(f'{line}\n')
            sys.stderr.flush()


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
    """Returns the options about checkpoints as a job takes them."""
    return CheckpointOptions(
        grow=parsed.grow, drop=parsed.drop, reset_slots=parsed.reset_slots,
        rename=renames(parsed.rename), assume=parsed.assume,
        follow_pointer=parsed.follow_pointer, strict_vocabulary=parsed.strict_vocabulary)
