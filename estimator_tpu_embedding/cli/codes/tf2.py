"""The codes of `tf.tpu.experimental.embedding.TPUEmbedding`: what TF2 jobs declare and enqueue."""

ENTRIES = {
    'E445': ('optimizer that trains no table', 'Tables are trained by SGD, Adagrad, '
             'AdagradMomentum, FTRL or Adam of tf.tpu.experimental.embedding; a Keras optimizer or '
             'the name of one is none, and without any there is no training.',
             'Make one of these, with the numbers of yours.'),
    'E446': ('feature_config of other things', 'A feature_config is a FeatureConfig of '
             'tf.tpu.experimental.embedding, or a nested structure of these.',
             'Wrap the TableConfig in a FeatureConfig.'),
    'E531': ('structure that is not that of feature_config', 'Features, weights and gradients '
             'have one value for each FeatureConfig, in dicts, lists and tuples like those of '
             'feature_config.', 'The message names the first place that differs; correct it.'),
}
