"""What became of the names that TensorFlow lost after 2.15: rules, and the table made of them."""

import collections
import fnmatch
import json
import pathlib
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / 'tests' / 'golden' / 'lost_names.json'
TABLE = ROOT / 'estimator_tpu_embedding' / 'LOST_NAMES.md'


class Rule(NamedTuple):
    """What became of some names.

    Attributes:
      pattern: of the names, where `*` stands for anything; the first rule that matches counts.
      fate: `'restored'`, `'refused'` (it resolves, and raises when it is used) or `'gone'`.
      note: as what, or why.
    """

    pattern: str
    fate: str
    note: str


_P, _TPU = 'tensorflow.python', 'tensorflow.python.tpu'
_NIGHTLY = 'tensorflow_estimator.python.estimator'
_RUNNER = 'the input threads and the step of the original; `TPUEstimator` makes its own'
_ENGINE = 'how the original runner spoke to the engine; give columns to `EmbeddingConfigSpec`'
_SAME = 'the same as `{}`'
_OTHER_SDK = '{} dropped it, not TensorFlow'

RULES = (
    Rule('*.RegisterExtension', 'gone', _OTHER_SDK.format('protobuf')),
    *[Rule(f'*.numpy.*.{name}', 'gone', _OTHER_SDK.format('NumPy 2'))
      for name in ('itemset', 'newbyteorder', 'ptp', 'tostring')],
    Rule('tf.tsl*', 'gone', 'a C++ library, visible by accident'),
    Rule('tf*.estimator.tpu*', 'restored', 'the classes of this package'),
    Rule('tf.compat.v1.estimator*', 'restored', 'tf-estimator-nightly, API of TensorFlow 1'),
    Rule('tf*.estimator*', 'restored', 'tf-estimator-nightly, API of TensorFlow 2; names that '
         'only the API of TensorFlow 1 has, such as `tpu`, are there too'),
    Rule('*.CheckpointInputPipelineHook', 'restored', 'a class of this package'),
    Rule('tf.compat.v1.tpu.experimental.*Parameters', 'restored', 'the classes of this package'),

    Rule(f'{_P}.distribute.estimator_training*', 'restored', 'functions of this package: '
         'strategies and clusters of plain Estimators run'),
    Rule(f'{_P}.eager.profiler*', 'gone', 'use `tf.profiler.experimental`'),
    Rule(f'{_P}.pywrap_tensorflow_internal*', 'gone', 'how Python reaches the C++ library'),
    *[Rule(f'{_P}.training.{name}*', 'restored', _SAME.format(f'{_P}.ops.gen_training_ops'))
      for name in ('training_ops', 'gen_training_ops')],
    Rule(f'{_P}.estimator*', 'restored', _SAME.format(f'{_NIGHTLY}`, module by module, `keras_lib` '
                                                      'as `keras')),
    *[Rule(f'{_TPU}.{name}*', 'restored', _SAME.format(f'{_NIGHTLY}.tpu.{name}')) for name in (
        'tpu_config', 'tpu_context', 'tpu_estimator', 'error_handling', 'util')],
    Rule(f'{_TPU}.session_support*', 'restored', 'finds no worker with a heartbeat, says so as '
         'the original does, and changes nothing'),
    Rule(f'{_TPU}.async_checkpoint*', 'restored', 'saves between two loops, in no thread'),
    Rule(f'{_TPU}.tpu_embedding*', 'restored', 'the classes and functions of this package'),
    Rule(f'{_TPU}.feature_column.split_sequence_columns', 'restored', 'a function of ours'),

    *[Rule(f'{_NIGHTLY}.tpu.tpu_estimator.{name}', 'refused', f'E930: {_RUNNER}') for name in (
        'CatchInvalidHostcallFunctions', 'TPUInfeedOutfeedSessionHookForPrediction',
        'TensorPacker', 'generate_*')],
    *[Rule(f'{_NIGHTLY}.tpu._tpu_estimator_embedding.{name}', 'refused', f'E930: {_ENGINE}')
      for name in ('EmbeddingConfig', 'get_*', 'split_inputs')],
    Rule(f'{_NIGHTLY}.tpu.tpu_estimator.*inference_on_tpu', 'restored', 'calls the model as it '
         'is: only graphs for the CPU are written'),
    Rule(f'{_NIGHTLY}.tpu.tpu_estimator.call_computation', 'restored', 'calls it as it is'),
    *[Rule(f'{_NIGHTLY}.tpu.{name}*', 'restored', 'the classes and functions of this package')
      for name in ('tpu_config', 'tpu_context', 'tpu_estimator', '_tpu_estimator_embedding')],
    Rule(f'{_NIGHTLY}*', 'restored', 'tf-estimator-nightly, which cannot be imported without what '
         'is restored here'))

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


def difference(original, current):
    """The golden: what `original` has and `current` lacks, each as `api_names.main` prints it.

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
    """The file that holds it, a line for each namespace."""
    lines = ',\n'.join(f'{json.dumps(key)}: {json.dumps(names)}'
                       for key, names in golden['lost'].items())
    return (f'{{"original": "{golden["original"]}", "current": "{golden["current"]}", "lost": {{\n'
            f'{lines}\n}}}}\n')


def lost_names():
    """All of the golden as dotted names."""
    return [namespace if name == '.' else f'{namespace}.{name}'
            for namespace, names in json.loads(GOLDEN.read_text())['lost'].items()
            for name in names]


def rule_of(name):
    """The rule that a name falls under, or `None`."""
    return next((rule for rule in RULES if fnmatch.fnmatchcase(name, rule.pattern)), None)


def table(golden):
    """The Markdown file."""
    by_rule = collections.defaultdict(list)
    for name in lost_names():
        by_rule[rule_of(name)].append(name)
    counts = {fate: sum(len(names) for rule, names in by_rule.items() if rule.fate == fate)
              for fate in ('restored', 'refused', 'gone')}
    lines = [
        *_HEAD.format(**golden, **counts, all=sum(counts.values())).splitlines(), '',
        '| lost | how many | after `install()` | as what, or why |', '|---|---|---|---|']
    lines += [f'| {_shown(rule, by_rule[rule])} | {len(by_rule[rule])} | {rule.fate} | '
              f'{rule.note} |' for rule in RULES]
    lines += ['', '## Name by name', '', 'Without what NumPy and protobuf dropped.', '',
              '| module or class | after `install()` | its names; `.` is itself |', '|---|---|---|']
    return '\n'.join([*lines, *_name_by_name(golden['lost']), ''])


def _name_by_name(lost):
    for namespace, names in lost.items():
        by_fate = collections.defaultdict(list)
        for name in names:
            rule = rule_of(namespace if name == '.' else f'{namespace}.{name}')
            if 'dropped it, not TensorFlow' not in rule.note:
                by_fate[rule.fate].append(f'`{name}`')
        for fate, those in by_fate.items():
            yield f'| `{namespace}` | {fate} | {", ".join(those)} |'


def _shown(rule, names):
    """A pattern, or the names if there are few and they have different parents."""
    return ', '.join(f'`{name}`' for name in names) if len(names) <= 4 else f'`{rule.pattern}`'
