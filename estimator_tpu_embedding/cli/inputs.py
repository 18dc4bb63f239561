"""Reads INPUT, the argument of most commands: a path, `-` for standard input, or
`py:module:object`.

Only `py:` runs code, and only because the user typed it.
"""

from __future__ import annotations

import dataclasses
import importlib
import operator
import os
import sys
from collections.abc import Callable
from typing import Any

from ..checkpoint import file_names, pointer
from ..checkpoint.manifest import Manifest, read_manifest
from ..checkpoint.rotation import LOOKS, is_gone, rotated_away
from ..core.plan import Plan
from ..errors import CorruptCheckpointError, UnreadableConfigError, shown
from ..proto import files, reading
from ..proto.codec import Config, plan_to_config

_PYTHON = 'py:'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A config or a manifest that a command can show.

    Attributes:
      where: its place, for the user; safe to print.
      config: the proto; not checked to be a plan.
      manifest: the tables of a checkpoint of this package.
    """

    where: str
    config: Config | None
    manifest: Manifest | None


def load(source: str) -> list[Input]:
    """Returns all configs and manifests that the argument names.

    Args:
      source: a file or SavedModel as `proto.reading.read_sources` takes it, `-` for standard
        input, a checkpoint prefix such as `dir/model.ckpt-4`, a model_dir, or
        `py:module:object`.

    Returns:
      One entry or more. The manifest of a checkpoint comes first.

    Raises:
      UnreadableConfigError: if there is nothing, or something that cannot be read.
    """
    if is_python(source):
        return from_object(python_object(source), reading.label(source))
    if os.path.isdir(source) and files.child(source, reading.SAVED_MODELS) is None:
        return _from_directory(source)
    if source != '-' and not os.path.lexists(source) and any(
            map(os.path.lexists, file_names.leading_files(source))):
        return _from_checkpoint(source, [], source)
    return _inputs(reading.read_sources(source))


def _inputs(sources: list[reading.Source]) -> list[Input]:
    return [Input(where=one.where, config=one.config, manifest=None) for one in sources]


def _from_directory(directory: str) -> list[Input]:
    """Inputs of the newest checkpoint, or of the next if a job deleted that one meanwhile."""
    for _ in range(LOOKS):
        prefix = _newest(directory)
        was_there = prefix is not None and not is_gone(prefix)
        try:
            found = _from_checkpoint(prefix, [os.path.join(directory, 'graph.pbtxt')], directory)
        except UnreadableConfigError:
            if prefix is None or not (was_there and is_gone(prefix)):
                raise
            continue
        if prefix is None or not (was_there and is_gone(prefix)) or found[0].manifest is not None:
            break
    else:
        assert prefix is not None
        raise UnreadableConfigError(*rotated_away(prefix).problems)
    return found


def _from_checkpoint(prefix: str | None, graphs: list[str], source: str) -> list[Input]:
    """The manifest of a checkpoint, if there is one, and each config of its graphs once."""
    found = []
    if prefix is not None:
        graphs = [file_names.graph_of(prefix), *graphs]
        try:
            manifest = read_manifest(prefix)
        except CorruptCheckpointError as error:
            raise UnreadableConfigError(*error.problems) from error
        if manifest is not None:
            found.append(Input(where=reading.label(prefix), config=None, manifest=manifest))
            if manifest.config:
                found += _inputs(reading.read_bytes(
                    manifest.config, f'{reading.label(prefix)}: config'))
    seen = {one.config.SerializeToString(deterministic=True)
            for one in found if one.config is not None}
    failures = []
    for path in filter(os.path.lexists, graphs):
        try:
            sources = reading.read_file(path, follow=False)
        except UnreadableConfigError as error:
            failures.append(error)  # It matters only if nothing else can be read.
            continue
        for one in sources:
            content = one.config.SerializeToString(deterministic=True)
            if content not in seen:
                seen.add(content)
                found += _inputs([one])
    if not found:
        for failure in failures:
            if failure.code != reading.NO_CONFIG:
                raise failure
        raise reading.unreadable(
            'E491', reading.label(source), 'a checkpoint must have a manifest of this package, or '
            'its graph must carry an embedding config', 'neither' if prefix else 'no checkpoint',
            'A directory must be a model_dir or that of a SavedModel.')
    return found


def _newest(directory: str) -> str | None:
    """The prefix of the newest checkpoint in a directory; `None` if there is none.

    The file `checkpoint` names it, by a name in the same directory. If the file names anything
    else, the checkpoint with the highest step is the newest.
    """
    try:
        names = set(os.listdir(directory))
        named = named_in_state(directory, names)
    except OSError as error:
        raise reading.unreadable('E480', reading.label(directory), 'it must be a directory that '
                                 'can be read', shown(error.strerror)) from error
    if named is None:
        found = [name for name in file_names.by_checkpoint(names)
                 if file_names.is_of_a_job(name) and _is_found(name, names)]
        named = max(found, default=None, key=lambda name: file_names.step_of(name) or 0)
    return os.path.join(directory, named) if named is not None else None


def named_in_state(directory: str, names: set[str]) -> str | None:
    """Returns the checkpoint that the file `checkpoint` names, if it is in `names`."""
    name = pointer.named_in(directory)
    return name if name is not None and _is_found(name, names) else None


def _is_found(checkpoint: str, names: set[str]) -> bool:
    """Whether a checkpoint is there, by the names in its directory."""
    return not names.isdisjoint(file_names.leading_files(checkpoint))


def is_python(source: str) -> bool:
    """Whether an argument names an object of Python."""
    return source.startswith(_PYTHON)


def python_object(source: str, is_wanted: Callable[[Any], bool] = lambda value: False) -> Any:
    """Returns the object that `py:module:object` names, found as `python -m module` finds modules.

    Args:
      source: the argument.
      is_wanted: tells objects that are returned as they are. Any other that can be called is
        called without arguments, and its result is returned.

    Raises:
      UnreadableConfigError: if the module or the function raises, or there is no such object.
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
        if callable(value) and not is_wanted(value):
            rule = 'the function must return a config'
            value = value()
    except (Exception, SystemExit) as error:  # Whatever the user's code does ends here.
        remedy = 'Name an object, or a function that needs no arguments.' if callable(value) else ''
        raise reading.unreadable('E492', reading.label(source), rule,
                                 f'{type(error).__name__}: {shown(error, 160)}', remedy) from error
    return value


def from_object(value: Any, where: str) -> list[Input]:
    """Returns the inputs that an object of Python holds.

    Args:
      value: a config, its bytes, or a `Plan`.
      where: its place, for the user.

    Raises:
      UnreadableConfigError: for another object, or bytes that are no config.
    """
    if isinstance(value, bytes):
        return _inputs(reading.read_bytes(value, where))
    if isinstance(value, Plan):
        return [Input(where=where, config=plan_to_config(value), manifest=None)]
    if holds_config(value):
        return _inputs(reading.read_bytes(value.SerializeToString(), where))
    raise reading.unreadable(
        'E492', where, 'the object must be a TPUEmbeddingConfiguration, its bytes, a Plan, or a '
        'function without arguments that returns one', shown(type(value).__qualname__))


def holds_config(value: Any) -> bool:
    """Whether `from_object` takes an object of Python."""
    # TensorFlow's class of the message is another one than ours; their bytes are the same.
    return isinstance(value, (bytes, Plan)) or getattr(
        getattr(value, 'DESCRIPTOR', None), 'name', '') == Config.DESCRIPTOR.name
