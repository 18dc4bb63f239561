"""Says by pattern which names TensorFlow lost after 2.15: restored, refused or gone.

`LOST_NAMES.md` is made from these rules by `tools/make_api_table.py`, and tests ask `install()`
about every name that falls under one.
"""

from __future__ import annotations

import fnmatch
from typing import NamedTuple


class Rule(NamedTuple):
    """The fate of the names that match a pattern.

    Attributes:
      pattern: `*` stands for any characters; the first rule whose pattern matches counts.
      fate: `'restored'`, `'refused'` (it resolves, and raises when it is used) or `'gone'`.
      note: its replacement, or the reason why it has none.
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

RULES: tuple[Rule, ...] = (
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


def rule_of(name: str) -> Rule | None:
    """Returns the rule that a lost name, with all its modules, falls under, or `None`.

    >>> rule_of('tf.estimator.DNNClassifier').fate
    'restored'
    """
    return next((rule for rule in RULES if fnmatch.fnmatchcase(name, rule.pattern)), None)
