#!/usr/bin/env python3
"""Writes `tests/golden/lost_names.json` and `estimator_tpu_embedding/LOST_NAMES.md`.

    .venv/bin/python tools/make_api_table.py [PYTHON]
    .venv/bin/python tools/make_api_table.py --table

The JSON file lists the names that TensorFlow lost after 2.15; the Markdown file says what became
of each, by the rules in `estimator_tpu_embedding/OLD_NAMES.md`. The script compares two
TensorFlows: the newer one of the Python that runs it, and 2.15 of the environment of PYTHON. If
PYTHON is left out, it is `.venv215/bin/python`, which `make_goldens.py` says how to make. With
`--table` the script writes the Markdown file alone, from the JSON file that is there.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

import api_names

from estimator_tpu_embedding.compat import old_names

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / 'tests' / 'golden' / 'lost_names.json'
TABLE = ROOT / 'estimator_tpu_embedding' / 'LOST_NAMES.md'

_HEAD = '''\
# What TensorFlow {current} lacks of {original}

{all} names and modules are lost. After `install()`, or under `etpe run`,

- {restored} are *restored*: they work, and the last column says as what;
- {refused} are *refused*: they resolve, and raise `UnsupportedError` when they are used;
- {gone} are *gone*: they stay away, and the last column says why.

`tools/make_api_table.py` makes this file; do not edit it. It compares, with Keras 2:

- every public name below `tf`, `tf.compat.v1` and `tf.compat.v2`, and its public members;
- all modules of `tensorflow.python`, and the public names in those of
  `tensorflow.python.{{tpu,distribute,training,data,feature_column}}`;
- the modules of `tensorflow_estimator` that can be imported, and their names.

Names that begin with `_` are left out: nobody promised them.
'''


def names_of(python, **environment):
    """Returns the names that the TensorFlow of a Python offers, as `api_names.main` prints them."""
    done = subprocess.run([python, api_names.__file__], stdout=subprocess.PIPE, check=True,
                          env={**os.environ, **environment})
    return json.loads(done.stdout)


def difference(original, current):
    """Returns the names that `original` has and `current` lacks, as `api_names.main` prints them.

    Returns:
      The versions, and lost names by the namespace or module that they were in. A module that is
      gone itself has the key `'.'` among its names.
    """
    lost = collections.defaultdict(list)
    for name, members in original['names'].items():
        if name not in current['names']:
            namespace, _, last = name.rpartition('.')
            lost[namespace].append(last)
            continue
        for member in set(members or ()) - set(current['names'][name] or ()):
            lost[name].append(member)
    for module, names in original['modules'].items():
        if module not in current['modules']:
            lost[module] = ['.', *(name for name in names if name != '*')]
        else:
            lost[module] += [name for name in names if name not in current['modules'][module]]
    return {'original': original['version'], 'current': current['version'],
            'lost': {key: sorted(names) for key, names in sorted(lost.items()) if names}}


def golden_text(golden):
    """Returns the golden file of a difference, a line for each namespace."""
    lines = ',\n'.join(f'{json.dumps(key)}: {json.dumps(names)}'
                       for key, names in golden['lost'].items())
    return (f'{{"original": "{golden["original"]}", "current": "{golden["current"]}", "lost": {{\n'
            f'{lines}\n}}}}\n')


def all_lost():
    """Returns all names of the golden file, dotted."""
    return [namespace if name == '.' else f'{namespace}.{name}'
            for namespace, names in json.loads(GOLDEN.read_text())['lost'].items()
            for name in names]


def table(golden):
    """Returns the text of the Markdown file."""
    by_rule = collections.defaultdict(list)
    for name in all_lost():
        by_rule[old_names.rule_of(name)].append(name)
    counts = {fate: sum(len(names) for rule, names in by_rule.items() if rule.fate == fate)
              for fate in ('restored', 'refused', 'gone')}
    lines = [
        *_HEAD.format(**golden, **counts, all=sum(counts.values())).splitlines(), '',
        '| lost | how many | after `install()` | as what, or why |', '|---|---|---|---|']
    lines += [f'| {_shown(rule, by_rule[rule])} | {len(by_rule[rule])} | {rule.fate} | '
              f'{rule.note} |' for rule in old_names.rules()]
    lines += ['', '## Name by name', '', 'Without what NumPy and protobuf dropped.', '',
              '| module or class | after `install()` | its names; `.` is itself |', '|---|---|---|']
    return '\n'.join([*lines, *_name_by_name(golden['lost']), ''])


def _name_by_name(lost):
    for namespace, names in lost.items():
        by_fate = collections.defaultdict(list)
        for name in names:
            rule = old_names.rule_of(namespace if name == '.' else f'{namespace}.{name}')
            if 'dropped it, not TensorFlow' not in rule.note:
                by_fate[rule.fate].append(f'`{name}`')
        for fate, those in by_fate.items():
            yield f'| `{namespace}` | {fate} | {", ".join(those)} |'


def _shown(rule, names):
    """A pattern, or the names if there are few and they have different parents."""
    return ', '.join(f'`{name}`' for name in names) if len(names) <= 4 else f'`{rule.pattern}`'


def main():
    """Writes both files, or with `--table` the second."""
    if sys.argv[1:] != ['--table']:
        original = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / '.venv215/bin/python')
        found = difference(names_of(original), names_of(sys.executable, TF_USE_LEGACY_KERAS='1'))
        GOLDEN.write_text(golden_text(found))
    unexplained = [name for name in all_lost() if old_names.rule_of(name) is None]
    if unexplained:
        sys.exit('No rule in estimator_tpu_embedding/OLD_NAMES.md for: '
                 + ', '.join(unexplained))
    TABLE.write_text(table(json.loads(GOLDEN.read_text())))
    print(f'{len(all_lost())} names')


if __name__ == '__main__':
    main()
