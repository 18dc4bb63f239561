"""The codes of TF2 jobs: `tf.tpu.experimental.embedding.TPUEmbedding` and its inputs."""

ENTRIES = {
    'E445': ('optimizer that trains no table',
             'SGD, Adagrad, AdagradMomentum, FTRL and Adam of tf.tpu.experimental.embedding '
             'train tables. A Keras optimizer, or its name, does not. Without an optimizer '
             'there is no training.',
             'Make one of these five, with the same numbers.'),
    'E446': ('feature_config of other things',
             'A feature_config is a FeatureConfig of tf.tpu.experimental.embedding, or a '
             'nested structure of these.',
             'Wrap the TableConfig in a FeatureConfig.'),
    'E447': ('slots that an engine cannot hold',
             'A slot_variable_creation_fn must return a new tf.Variable for each name that it '
             'gets. The variable must have the shape of the table.',
             'Make slots by tf.Variable(initializer(shape)), or leave the function out.'),
    'W008': ('tables that the optimizer of the model trains',
             'Under a strategy for CPUs, or none, the Keras layer of TFRS holds its tables as '
             'plain variables, in a TPUEmbeddingForServing. The optimizer that applies the '
             "model's gradients trains them, as TFRS documents it. The optimizer of the layer "
             'does not.',
             'Create the model in the scope of a tf.distribute.TPUStrategy, under etpe run '
             '--hosts H --cores C. Or go on, if that is what you want.'),
    'E531': ('structure that differs from feature_config',
             'Features, weights and gradients need one value for each FeatureConfig. Their '
             'dicts, lists and tuples must be nested like feature_config.',
             'Correct the first difference, which the message names.'),
    'E532': ('input of a wrong rank',
             'Dense ids have rank 1, or a last dimension of 1. Sparse ids have rank 2 or more, '
             'and ragged ids have rank 2. The last dimension is reduced.',
             'Reshape the ids in the input pipeline, and give tensors a static rank.'),
    'E533': ('output shape that is not known',
             'The number of samples of a replica is fixed when tables are built. So batches '
             'need a static shape without dimensions of 0.',
             'Batch with drop_remainder=True. Or give output_shape to FeatureConfig, or '
             'per_replica_input_shapes to build().'),
    'E534': ('input that contradicts the output shape',
             'FeatureConfig.output_shape, the arguments of build() and the first batch fix the '
             'output shape of a feature. Every later batch must have it, also in evaluations.',
             'Give all batches this shape, per replica.'),
    'E535': ('ids outside of the output shape',
             'Every id belongs to a cell of the output shape of its feature. This batch has '
             'more or fewer rows, or an index that is too large. It would give the activations '
             'of other samples.',
             'Batch with drop_remainder=True, and look at the code that made the indices.'),
    'E536': ('per_replica_input_shapes without shapes',
             'per_replica_input_shapes has a tf.TensorShape for each feature, in the structure '
             'of feature_config. Or it is one int, the samples per replica.',
             'Wrap each shape in tf.TensorShape.'),
    'E539': ('ids that are no argument of the step',
             'A TPU gets all ids before the function of strategy.run begins. So enqueue, or a '
             'layer that calls it, takes only arguments of that function as they come. A cast or '
             'a sum makes another tensor.',
             'Compute ids in the dataset. Give the Inputs of a Keras model the types of the '
             'dataset.'),
    'E540': ('enqueue within a part of the step',
             'A TPU gets all ids before the function of strategy.run begins. TensorFlow cannot '
             'move an enqueue there out of a loop, a condition or an inner tf.function.',
             'Call enqueue in the function that strategy.run calls, or around strategy.run.'),
    'E541': ('SavedModel that trains or looks up what others enqueued',
             'A SavedModel is served without a TPU, and without this package. Its functions look '
             'up by operations of TensorFlow. They have no queues, and train no tables.',
             'Let a function enqueue the ids that it looks up. To train on, make the model anew '
             'and restore a checkpoint. A model made under no strategy can restore it too: '
             'tf.train.Checkpoint(model=model).restore(path).expect_partial().'),
    'E542': ('look-ups in a function that XLA compiles',
             'Look-ups and updates go through queues and tables of the host, which XLA cannot '
             'compile.',
             'Leave jit_compile out of tf.function, and out of compile of a Keras model.'),
    'E545': ('device that is no replica',
             'enqueue(device="/TPU:k") enqueues for replica k only, and so does the k-th of '
             'strategy.extended.worker_devices. The strategy does not have this replica.',
             'Correct the number, or leave device out.'),
    'E546': ('gradient that is no tensor',
             'apply_gradients takes a float32 tensor for each feature, of the shape of its '
             'activations. None stands for zeros.',
             'Take the gradient by the activations that dequeue returned. tf.convert_to_tensor '
             'makes a tensor of an array.'),
    'E547': ('gradient of a wrong shape',
             'The gradient of a feature has the shape of its activations on one replica. That '
             'is the output shape, then the width of the table.',
             'Take the gradient by the activations that dequeue returned.'),
    'E548': ('replicas at different batches',
             'All replicas apply gradients of the same step. So each replica must enqueue and '
             'dequeue as many batches as the others.',
             'Call both in every replica. If a step failed in between, go on: its unfinished '
             'batches are given up.'),
    'E549': ('apply_gradients where replicas cannot meet',
             'The gradients of all replicas are applied together. So each replica must call '
             'apply_gradients once, outside of any loop, condition or inner function.',
             'Put the loop around strategy.run.'),
    'E550': ('call outside of the replicas',
             'Each replica dequeues its own batch and gives its own gradients. Outside of '
             'strategy.run there is no replica.',
             'Call it in the function that strategy.run calls. Use the strategy under which '
             'the object was made.'),
    'E551': ('eager call',
             'enqueue, dequeue and apply_gradients are parts of a program for the TPU. The '
             'program is made when a tf.function is traced.',
             'Put the step into a tf.function, and leave tf.config.run_functions_eagerly off.'),
    'E552': ('tables that are on the TPU',
             'Under a TPUStrategy the tables are in the memory of the TPU, so there are no '
             'variables to read.',
             'Save a checkpoint, and restore it into an object that was made outside of the '
             'strategy.'),
    'E553': ('object that is not built',
             'The shapes of activations are not known yet. The first enqueue, or build() with '
             'the shapes of inputs, makes them known.',
             'Call enqueue first, or build().'),
    'E554': ('dequeue with nothing enqueued',
             'dequeue takes the oldest enqueued batch of its replica, and there is none. '
             'Hardware would wait for ever.',
             'Call enqueue before dequeue, once for each dequeue. See the argument device too.'),
    'E555': ('batch whose gradients did not come',
             'Each batch that is enqueued with training=True needs one apply_gradients before '
             'the next dequeue. Hardware would wait for ever.',
             'Enqueue batches of evaluations with training=False. If a step failed in between, '
             'go on: its unfinished batches are given up.'),
    'E556': ('gradients without a batch',
             'apply_gradients needs a dequeued batch that was enqueued with training=True, and '
             'may be called once for it. Hardware would wait for ever.',
             'Enqueue with training=True, and leave apply_gradients out in evaluations.'),
    'E557': ('too many batches that wait',
             'At most 64 enqueued batches per replica may wait for dequeue. Hardware would '
             'wait for ever.',
             'Call dequeue once for each enqueue.'),
    'E558': ('training without an optimizer',
             'A table without an optimizer cannot be updated.',
             'Give TPUEmbedding or each TableConfig an optimizer.'),
    'E559': ('second TPUEmbedding on one TPU',
             'A TPU has the tables of one TPUEmbedding, and a second one needs a TPU that was '
             'initialized again. The second one has its own tables. '
             'initialize_tpu_embedding=False does not share them, as in TensorFlow 2.3.',
             'Call tf.tpu.experimental.initialize_tpu_system() before the second one is built. '
             'Or use the first one, with training=False for evaluation.'),
}
