"""Lists the names of a TensorFlow: public names by walking them, modules by their files.

Run as a script, in the environment of any TensorFlow, it prints JSON. It imports nothing of ours.
"""

import ast
import importlib.util
import json
import os
import pathlib
import re
import sys
import types

# Modules that make up the API, where others are only imported by it.
API = re.compile(r'tensorflow\.(_api|compat)\b|(tf_)?keras\.api\b|tensorboard\.summary\b'
                 r'|tensorflow_estimator\..*\b_?api\b')
FOLDERS = ('tpu', 'distribute', 'training', 'data', 'feature_column')


def walk(module, path, found, around=()):
    """Adds to `found` each public name below a module, with the members of a class or `None`.

    `tf.compat.v1.compat` and its like are left out: they are the same once more.
    """
    for name in dir(module):
        if name.startswith('_') or name == 'compat' and 'compat' in path.split('.'):
            continue
        value, dotted = getattr(module, name), f'{path}.{name}'
        found[dotted] = ([one for one in dir(value) if not one.startswith('_')]
                         if isinstance(value, type) else None)
        if (isinstance(value, types.ModuleType) and API.match(value.__name__)
                and value.__name__ not in around):
            walk(value, dotted, found, (*around, value.__name__))


def public_names(path):
    """The public classes, functions and constants that a file defines at its top."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(one.id for one in node.targets if isinstance(one, ast.Name))
    return sorted(name for name in names if not name.startswith('_'))


def modules(package, directory):
    """The public names of each module of a package, by its path.

    A module of `tensorflow.python` outside of `FOLDERS` has the names `['*']`: scripts have no
    business there, so only whole modules are of interest.
    """
    found = {}
    for file in directory.rglob('*.py'):
        parts = file.relative_to(directory).with_suffix('').parts
        if any(part.startswith('_') and part not in ('__init__', '_tpu_estimator_embedding')
               for part in parts) or parts[-1].endswith('_test'):
            continue
        dotted = '.'.join((package, *(part for part in parts if part != '__init__')))
        is_wanted = parts[0] in FOLDERS
        found[dotted] = public_names(file) if is_wanted else ['*']
    return found


def main():
    """Prints all names."""
    import tensorflow as tf
    names = {}
    walk(tf, 'tf', names)
    here = pathlib.Path(tf.__file__).parent / 'python'
    files = modules('tensorflow.python', here)
    estimator = importlib.util.find_spec('tensorflow_estimator')
    try:
        import tensorflow_estimator  # noqa: F401
    except ImportError:  # It is installed, but lacks what this TensorFlow deleted.
        estimator = None
    if estimator is not None:
        files.update(modules('tensorflow_estimator.python.estimator',
                             pathlib.Path(estimator.origin).parent / 'python' / 'estimator'))
    json.dump({'version': tf.__version__, 'names': names, 'modules': files}, sys.stdout)


if __name__ == '__main__':
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
    main()
