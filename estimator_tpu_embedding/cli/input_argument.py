"""Reads INPUT, the argument of most commands: a path, `-` for standard input, or
`py:module:object`.

Only `py:` runs code, and only because the user typed it.
"""

from __future__ import annotations

import glob
import importlib
import operator
import os
import sys
from typing import Any

from ..checkpoint import file_names
from ..checkpoint.concurrent_changes import steady, watch
from ..checkpoint.manifest import read_manifest
from ..core.plan import Plan
from ..errors import CorruptCheckpointError, UnreadableConfigError, shown
from ..proto import files, reading
from ..proto.codec import Config, plan_to_config
from ..proto.reading import Source

_PYTHON = 'py:'
NO_CONFIG = 'E491'


def load(source: str) -> list[Source]:
    """Returns all configs that the argument names, one or more.

    Args:
      source: a file or SavedModel as `proto.reading.read_sources` takes it, `-` for standard
        input, a checkpoint prefix such as `dir/model.ckpt-4`, a model_dir, or
        `py:module:object`.
    """
    if is_python(source):
        return from_object(python_object(source), reading.label(source))
    if not may_be_checkpoint(source):
        return reading.read_sources(source)
    if not os.path.isdir(source):
        return _of_checkpoint(source, [], source)
    graphs = [os.path.join(source, 'graph.pbtxt'),
              *sorted(glob.glob(os.path.join(glob.escape(source), '*.graph.pb')))]
    return steady(lambda: _of_checkpoint(_newest(source), graphs, source), watch(source),
                  lambda found: False)


def may_be_checkpoint(source: str) -> bool:
    """Whether an argument names a checkpoint, or a directory that may hold some."""
    if os.path.isdir(source):
        return files.child(source, reading.SAVED_MODELS) is None
    return source != '-' and not os.path.lexists(source) and any(
        map(os.path.lexists, file_names.leading_files(source)))


def _of_checkpoint(prefix: str | None, graphs: list[str], source: str) -> list[Source]:
    """Each config of a checkpoint once: of its manifest, and of its graphs."""
    found: list[Source] = []
    if prefix is not None:
        graphs = [prefix + file_names.GRAPH, *graphs]
        try:
            manifest = read_manifest(prefix)
        except CorruptCheckpointError as error:
            raise UnreadableConfigError(*error.problems) from error
        if manifest is not None and manifest.config:
            found += reading.read_bytes(manifest.config, f'{reading.label(prefix)}: config')
    failures = []
    for path in filter(os.path.lexists, graphs):
        try:
            found += reading.read_file(path, follow=False)
        except UnreadableConfigError as error:
            failures.append(error)  # It matters only if nothing else can be read.
    if not found:
        for failure in failures:
            if failure.code != reading.NO_CONFIG:
                raise failure
        raise reading.unreadable(
            NO_CONFIG, reading.label(source), 'the manifest or graph of a checkpoint must have an '
            'embedding config', 'neither' if prefix else 'no checkpoint', 'A directory must be a '
            'model_dir or that of a SavedModel; etpe checkpoint shows and compares checkpoints '
            'without a config.')
    once: dict[bytes, Source] = {}
    for one in found:
        once.setdefault(one.config.SerializeToString(deterministic=True), one)
    return list(once.values())


def _newest(directory: str) -> str | None:
    """Returns the prefix of the checkpoint at which a job would look first; `None` if there is
    none.
    """
    from ..checkpoint import recover
    try:
        names = recover.candidates(directory)
    except OSError as error:
        raise reading.unreadable('E480', reading.label(directory), 'it must be a directory that '
                                 'can be read', shown(error.strerror)) from error
    return os.path.join(directory, names[-1]) if names else None


def is_python(source: str) -> bool:
    """Whether an argument names an object of Python."""
    return source.startswith(_PYTHON)


def python_object(source: str) -> Any:
    """Returns the object that `py:module:object` names, found as `python -m module` finds modules.

    If it can be called, it is called without arguments, and its result is returned.
    """
    module, _, path = source.removeprefix(_PYTHON).partition(':')
    if not module or not path:
        raise reading.unreadable('E492', reading.label(source), 'it must be py:module:object',
                                 remedy='For example py:jobs.census:config.')
    if not {'', os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())
    rule, value = 'the object must be importable', None
    try:
        value = operator.attrgetter(path)(importlib.import_module(module))
        if callable(value):
            rule = 'the function must return a config'
            value = value()
    except (Exception, SystemExit) as error:  # Whatever the user's code does ends here.
        remedy = 'Name an object, or a function that needs no arguments.' if callable(value) else ''
        raise reading.unreadable('E492', reading.label(source), rule,
                                 f'{type(error).__name__}: {shown(error, 160)}', remedy) from error
    return value


def from_object(value: Any, where: str) -> list[Source]:
    """Returns the config of an object of Python: a config, its bytes, or a `Plan`."""
    if isinstance(value, Plan):
        return [Source(where=where, config=plan_to_config(value))]
    if holds_config(value):
        return reading.read_bytes(
            value if isinstance(value, bytes) else value.SerializeToString(), where)
    raise reading.unreadable(
        'E492', where, 'the object must be a TPUEmbeddingConfiguration, its bytes, a Plan, or a '
        'function without arguments that returns one', shown(type(value).__qualname__))


def holds_config(value: Any) -> bool:
    """Whether `from_object` takes an object of Python."""
    # TensorFlow's class of the message is another one than ours; their bytes are the same.
    return isinstance(value, (bytes, Plan)) or getattr(
        getattr(value, 'DESCRIPTOR', None), 'name', '') == Config.DESCRIPTOR.name
