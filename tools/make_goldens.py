#!/usr/bin/env python3
"""Writes `tests/golden/`: results of declarations in TensorFlow 2.15, and names that it has.

Run it in a virtual environment of its own (Python <= 3.11), never in the one of the project:

    python3.11 -m venv .venv215
    .venv215/bin/pip install tensorflow-cpu==2.15.1 tensorflow-estimator==2.15.0
    .venv215/bin/python tools/make_goldens.py
"""

import functools
import inspect
import json
import pathlib
import re
import sys

import tensorflow
import tensorflow.compat.v1 as tf  # noqa: F401
from google.protobuf import text_format
from tensorflow.compat.v1 import estimator as tf_estimator
from tensorflow.python.tpu import tpu_embedding, tpu_embedding_gradient  # noqa: F401

TOOLS = pathlib.Path(__file__).resolve().parent
TESTS = TOOLS.parent / 'tests'
sys.path.insert(0, str(TESTS))
from harness.bad_calls import BAD_CALLS, NAMES  # noqa: E402
from harness.declarations import all_declarations, build, renumbered  # noqa: E402
from harness.names import tensorflow_names  # noqa: E402

DIRECTORY = TESTS / 'golden'


def example_names():
    """The names that the examples use, each looked up here, where they come from."""
    names = set()
    for text in [path.read_text() for path in TOOLS.glob('examples/*.py')]:
        roots = {**globals(), 'tf': tensorflow} if 'import tensorflow as tf' in text else globals()
        for name in tensorflow_names(text):
            root, *attributes = name.split('.')
            functools.reduce(getattr, attributes, roots[root])
            names.add(name)
    return sorted(names)


def signatures():
    """The arguments of every class and method that the tests call, with their defaults."""
    found = {}
    for name in NAMES:
        root = tf_estimator.tpu.experimental if name == 'EmbeddingConfigSpec' else tpu_embedding
        called = functools.reduce(getattr, name.split('.'), root)
        found[name] = [
            [argument.name, repr(argument.default) if argument.default is not argument.empty
             else None] for argument in inspect.signature(called).parameters.values()]
    return found


def errors():
    """Returns the errors that the original raises for calls that cannot work."""
    found = {}
    for name, call in BAD_CALLS.items():
        try:
            call(tpu_embedding)
        except Exception as error:
            # Where an object lies in memory differs at every run.
            text = re.sub('0x[0-9a-f]+', '0x0', str(error))
            found[name] = [type(error).__name__, text]
        else:
            raise AssertionError(f'{name} is accepted')
    return found


def main():
    """Writes all goldens."""
    configs = {name: build(tpu_embedding, declared).config_proto
               for name, declared in all_declarations().items()}
    for name, config in configs.items():
        (DIRECTORY / 'configs' / f'{name}.pbtxt').write_text(
            text_format.MessageToString(renumbered(config)))
    (DIRECTORY / 'example_names.txt').write_text('\n'.join(example_names()) + '\n')
    for name, content in (('signatures', signatures()), ('errors', errors())):
        (DIRECTORY / f'{name}.json').write_text(
            json.dumps(content, indent=1, sort_keys=True) + '\n')
    print(f'wrote {len(configs) + 3} files')


if __name__ == '__main__':
    main()
