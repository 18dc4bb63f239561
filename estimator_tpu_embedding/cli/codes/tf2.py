"""The codes of `tf.tpu.experimental.embedding.TPUEmbedding`: what TF2 jobs declare and enqueue."""

ENTRIES = {
    'E445': ('optimizer that trains no table', 'Tables are trained by SGD, Adagrad, '
             'AdagradMomentum, FTRL or Adam of tf.tpu.experimental.embedding; a Keras optimizer or '
             'the name of one is none, and without any there is no training.',
             'Make one of these, with the numbers of yours.'),
    'E446': ('feature_config of other things', 'A feature_config is a FeatureConfig of '
             'tf.tpu.experimental.embedding, or a nested structure of these.',
             'Wrap the TableConfig in a FeatureConfig.'),
    'E447': ('slots that an engine cannot hold', 'A slot_variable_creation_fn returns a '
             'tf.Variable for each name it is given, of the shape of the table, made while it is '
             'called.',
             'Make slots by tf.Variable(initializer(shape)), or leave the function out.'),
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
    'E535': ('ids outside of the output shape', 'Every id belongs to a cell of the output shape of '
             'its feature. A batch with more or fewer rows, or an index that is too large, would '
             'give the activations of other samples.',
             'Batch with drop_remainder=True; look at what made the indices.'),
    'E536': ('per_replica_input_shapes without shapes', 'It has a tf.TensorShape for each feature '
             'in the structure of feature_config, or is one int, the samples per replica.',
             'Wrap each shape in tf.TensorShape.'),
    'E545': ('device that is no replica', 'enqueue(device="/TPU:k") hands over for replica k only, '
             'of those that the strategy has.', 'Correct the number, or leave device out.'),
    'E546': ('gradient that is no tensor', 'apply_gradients takes a float32 tensor for each '
             'feature, of the shape of its activations, or None for zeros.',
             'Take the gradient by the activations that dequeue returned; tf.convert_to_tensor '
             'makes tensors of arrays.'),
    'E547': ('gradient of a wrong shape', 'The gradient of a feature has the shape of its '
             'activations on one replica: the output shape, then the width of the table.',
             'Take it by the activations that dequeue returned.'),
    'E548': ('replicas at different batches', 'All replicas apply gradients of the same step, so '
             'each has enqueued and dequeued as many batches as the others.',
             'Call both in every replica. After a step that failed in between, go on: what it '
             'left is given up.'),
    'E549': ('apply_gradients where replicas cannot meet', 'The gradients of all replicas are '
             'applied together, so each replica comes to apply_gradients once, and not within a '
             'loop, a condition or a function of its own.', 'Put the loop around strategy.run.'),
    'E550': ('call outside of the replicas', 'Each replica dequeues its own batch and gives its '
             'own gradients; outside of strategy.run no replica is meant.',
             'Call it in the function that strategy.run calls, under the strategy under which the '
             'object was created.'),
    'E551': ('eager call', 'enqueue, dequeue and apply_gradients are parts of a program for the '
             'TPU, which is made when a tf.function is traced.', 'Put the step into a tf.function, '
             'and leave tf.config.run_functions_eagerly off.'),
    'E552': ('tables that are on the TPU', 'Under a TPUStrategy, tables are in the memory of the '
             'TPU, and no variable can be had.', 'Save a checkpoint, and restore it into an object '
             'that was made outside of the strategy.'),
    'E553': ('object that is not built', 'Before the first batch is enqueued, or build() is called '
             'with the shapes of inputs, the shapes of activations are not known.',
             'Call enqueue first, or build().'),
    'E554': ('dequeue with nothing enqueued', 'dequeue takes the oldest batch that its replica has '
             'not dequeued. Hardware would wait for ever.', 'Call enqueue before dequeue, once '
             'for each dequeue; see the argument device too.'),
    'E555': ('batch whose gradients did not come', 'A batch that is enqueued with training=True '
             'gets one apply_gradients, before the next one is dequeued. Hardware would wait for '
             'ever.', 'Enqueue batches of evaluations with training=False. After a step that '
             'failed in between, go on: what it left is given up.'),
    'E556': ('gradients without a batch', 'apply_gradients is for the batch that was dequeued '
             'last, if it was enqueued with training=True, and once. Hardware would wait for ever.',
             'Enqueue with training=True, and leave apply_gradients out in evaluations.'),
    'E557': ('too many batches that wait', 'At most 64 batches per replica may be enqueued and not '
             'yet dequeued. Hardware would wait for ever.', 'Call dequeue once for each enqueue.'),
    'E558': ('training without an optimizer', 'A table without an optimizer cannot be updated.',
             'Give TPUEmbedding or each TableConfig an optimizer.'),
    'E559': ('second TPUEmbedding on one TPU', 'A TPU has the tables of one TPUEmbedding. A second '
             'one needs a TPU that was initialized again, and has its own tables: it shares none '
             'by initialize_tpu_embedding=False, as in TensorFlow 2.3.', 'Call '
             'tf.tpu.experimental.initialize_tpu_system() before the second one is built, or use '
             'the first one, with training=False for evaluation.'),
}
