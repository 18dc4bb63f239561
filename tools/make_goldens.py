#!/usr/bin/env python3
"""Writes `tests/golden/`: what TensorFlow 2.15 makes of declarations, and names that it has.

Run it in a virtual environment of its own (Python <= 3.11), never in that of the project:

    python3.11 -m venv .venv215
    .venv215/bin/pip install tensorflow-cpu==2.15.1 tensorflow-estimator==2.15.0
    .venv215/bin/python tools/make_goldens.py

While `.venv215` exists, a property test compares with the original itself.
"""

import functools
import inspect
import json
import pathlib
import sys

import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from tensorflow.compat.v1 import estimator as tf_estimator
from tensorflow.python.tpu import tpu_embedding

TOOLS = pathlib.Path(__file__).resolve().parent
TESTS = TOOLS.parent / 'tests'
sys.path.insert(0, str(TESTS))
from harness.bad_calls import BAD_CALLS, NAMES  # noqa: E402
from harness.declarations import all_declarations, build, renumbered  # noqa: E402
from harness.names import tensorflow_names  # noqa: E402

DIRECTORY = TESTS / 'golden'


def example_names():
    """The names that the census job uses, each looked up here, where they come from."""
    roots = {'tf': tf, 'tf_estimator': tf_estimator}
    names = tensorflow_names((TOOLS / 'examples' / 'census_tpu_job.py').read_text())
    for name in names:
        root, *attributes = name.split('.')
        functools.reduce(getattr, attributes, roots[root])
    return names


def signatures():
    """The arguments of every class of the module, with their defaults."""
    return {
        name: [[argument.name, repr(argument.default) if argument.default is not argument.empty
                else None] for argument in inspect.signature(cls).parameters.values()]
        for name, cls in {**vars(tpu_embedding), 'EmbeddingConfigSpec':
                          tf_estimator.tpu.experimental.EmbeddingConfigSpec}.items()
        if isinstance(cls, type) and name in NAMES}


def errors():
    """What the original raises for calls that cannot work."""
    found = {}
    for name, call in BAD_CALLS.items():
        try:
            call(tpu_embedding)
        except Exception as error:
            found[name] = [type(error).__name__, str(error)]
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
