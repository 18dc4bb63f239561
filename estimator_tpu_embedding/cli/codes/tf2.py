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
    'E532': ('input of a wrong rank', 'Dense ids have rank 1, or a last dimension of 1; sparse '
             'ids have rank 2 or more, ragged ones rank 2. The last dimension is reduced.',
             'Reshape them in the input pipeline, and give tensors a static rank.'),
    'E533': ('output shape that is not known', 'How many samples a replica has is fixed when '
             'tables are built, so batches need a static shape, without dimensions of 0.',
             'Batch with drop_remainder=True, or give output_shape to FeatureConfig or '
             'per_replica_input_shapes to build().'),
    'E534': ('input that contradicts the output shape', 'FeatureConfig.output_shape, what build() '
             'was given and the first batch fix the output shape of a feature; all batches, those '
             'of evaluations too, have it.', 'Give all batches this shape, per replica.'),
    'E536': ('per_replica_input_shapes without shapes', 'It has a tf.TensorShape for each feature '
             'in the structure of feature_config, or is one int, the samples per replica.',
             'Wrap each shape in tf.TensorShape.'),
}
