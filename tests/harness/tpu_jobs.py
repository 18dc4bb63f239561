"""Jobs whose TPU graphs are compared with those of TensorFlow 2.15, which runs this file, too.

So it imports nothing but TensorFlow, under the names that TensorFlow 2.15 had. There are few rows,
samples and features: the graphs are what counts, and nothing runs.
"""

import tensorflow.compat.v1 as tf

_OTHERS = {'sgd': {}, 'adagrad': {'initial_accumulator': 0.25}, 'adam': {'beta1': 0.5},
           'ftrl': {'learning_rate_power': -0.5, 'l1_regularization_strength': 0.1,
                    'l2_regularization_strength': 0.1},
           'momentum': {'momentum': 0.5},
           'rmsprop': {'rho': 0.9, 'momentum': 0.5, 'epsilon': 1e-3},
           'proximal_adagrad': {}, 'adagrad_momentum': {'momentum': 0.5}, 'proximal_yogi': {}}
_CLASSES = {'sgd': 'StochasticGradientDescent', 'adagrad': 'Adagrad', 'adam': 'Adam',
            'ftrl': 'Ftrl', 'momentum': 'Momentum', 'rmsprop': 'RMSProp',
            'proximal_adagrad': 'ProximalAdagrad', 'adagrad_momentum': 'AdagradMomentum',
            'proximal_yogi': 'ProximalYogi'}

# By name: hosts, cores per host, and what differs from the plainest job.
ESTIMATOR_JOBS = {
    **{f'optimizer {name}': (1, 2, {'optimizer': name}) for name in [*_OTHERS, 'frequency']},
    **{f'columns {name}': (2, 2, {'optimizer': name, 'columns': True}) for name in (
        'sgd', 'adagrad', 'adam', 'ftrl', 'momentum', 'rmsprop', 'proximal_adagrad')},
    'mod on two hosts': (2, 4, {'columns': True, 'strategy': 'mod'}),
    'more hosts than rows': (4, 2, {'rows': 3}),
    'one batch per host': (1, 8, {'columns': True, 'per_host': 'PER_HOST_V1'}),
    'pipelined': (4, 2, {'pipelined': True}),
    'functions as rates': (2, 1, {'dynamic': True}),
    'optimizers by table': (2, 1, {'by_table': True}),
    'gradient multiplier': (1, 2, {'columns': True, 'multiplier': True}),
    'host call': (2, 2, {'columns': True, 'host_call': True}),
    'tensor core': (1, 2, {'columns': True, 'tensor_core': True}),
    'no tables': (2, 2, {'tables': False})}
RAW_JOBS = {
    'raw sparse': (2, 2, {'optimizer': 'adam'}),
    'raw ragged': (1, 2, {'ragged': True}),
    'raw mod': (4, 1, {'strategy': 'mod', 'rows': 3, 'dynamic': True}),
    'raw inference': (2, 1, {'inference': True, 'by_table': True})}
BATCH = 16  # of all cores
LENGTH = 3
STEPS = 2
JOB = 'tpu_worker'
MASTER = 'grpc://tpu:8470'


def parameters(name):
    """The optimization parameters of a name, with the rate 0.5."""
    from tensorflow.python.tpu import tpu_embedding
    if name == 'frequency':
        return tpu_embedding.FrequencyEstimatorParameters(
            tau=0.5, max_delta=8, outlier_threshold=2, weight_exponent=1)
    return getattr(tpu_embedding, f'{_CLASSES[name]}Parameters')(0.5, **_OTHERS[name])


def _slow(step):
    return 1.0 / (1.0 + tf.cast(step, tf.float32))


def _fast(step):
    return 2.0 / (1.0 + tf.cast(step, tf.float32))


def _configs(optimizer, rows, dynamic, by_table):
    """Two tables, and four features: plain, weighted, a sequence, and one of the second table."""
    from tensorflow.python.tpu import tpu_embedding
    width = 1 if optimizer == 'frequency' else 4
    tables = {
        'video': tpu_embedding.TableConfig(
            rows, width, tf.constant_initializer(0.5), 'mean',
            learning_rate_fn=_slow if dynamic else None,
            optimization_parameters=parameters('ftrl') if by_table else None),
        'user': tpu_embedding.TableConfig(
            7, width, tf.zeros_initializer(), 'sum', learning_rate_fn=_fast if dynamic else None,
            optimization_parameters=parameters('adam') if by_table else None)}
    features = {
        'watched': tpu_embedding.FeatureConfig('video'),
        'liked': tpu_embedding.FeatureConfig('video', weight_key='how_much'),
        'history': tpu_embedding.FeatureConfig('video', max_sequence_length=LENGTH),
        'who': tpu_embedding.FeatureConfig('user')}
    return tables, features


def _columns(tensor_core):
    """The same as `_configs`, as columns: the plain ones, and the sequence."""
    by_identity = tf.feature_column.categorical_column_with_identity
    weighted = tf.feature_column.weighted_categorical_column(by_identity('liked', 22), 'how_much')
    embedding_column = tf.tpu.experimental.embedding_column
    plain = [
        *tf.tpu.experimental.shared_embedding_columns(
            [by_identity('watched', 22), weighted], dimension=4, combiner='mean',
            initializer=tf.constant_initializer(0.5)),
        embedding_column(by_identity('who', 7), dimension=4, combiner='sum',
                         initializer=tf.zeros_initializer(), learning_rate_fn=_slow)]
    if tensor_core:
        plain.append(embedding_column(
            by_identity('core', 5), dimension=4, embedding_lookup_device='tpu_tensor_core',
            tensor_core_shape=[BATCH // 2, LENGTH]))
    return plain, embedding_column(
        tf.feature_column.sequence_categorical_column_with_identity('history', 22), dimension=4,
        max_sequence_length=LENGTH, initializer=tf.zeros_initializer())


def _ids(batch_size, kind=tf.int64):
    """Two ids, all of them 1, for every sample."""
    indices = [[sample, place] for sample in range(batch_size) for place in range(2)]
    return tf.SparseTensor(tf.constant(indices, tf.int64),
                           tf.constant([1] * len(indices), kind), [batch_size, 2])


def _dataset(names, batch_size):
    """Samples with ids, weights and a label."""
    features = {name: _ids(batch_size) for name in names}
    if 'liked' in names:
        features['how_much'] = _ids(batch_size, tf.float32)
    features['dense'] = tf.ones([batch_size, 2])
    return tf.data.Dataset.from_tensors((features, tf.ones([batch_size, 1]))).repeat()


def train_and_evaluate(name, model_dir):
    """Trains and evaluates one of ESTIMATOR_JOBS."""
    _train_and_evaluate(model_dir, **ESTIMATOR_JOBS[name][2])


def _train_and_evaluate(model_dir, optimizer='adagrad', columns=False, strategy='div', rows=22,
                        per_host='PER_HOST_V2', pipelined=False, dynamic=False, by_table=False,
                        multiplier=False, host_call=False, tensor_core=False, tables=True):
    tpu = tf.estimator.tpu
    spec, names = None, []
    others = {'pipeline_execution_with_tensor_core': pipelined, 'partition_strategy': strategy,
              'experimental_gradient_multiplier_fn': _fast if multiplier else None}
    if columns:
        plain, sequence = _columns(tensor_core)
        names = ['watched', 'liked', 'who', 'history'] + ['core'] * tensor_core
        spec = tpu.experimental.EmbeddingConfigSpec(
            feature_columns=[*plain, sequence], optimization_parameters=parameters(optimizer),
            **others)
    elif tables:
        tables, features = _configs(optimizer, rows, dynamic, by_table)
        names = list(features)
        spec = tpu.experimental.EmbeddingConfigSpec(
            table_to_config_dict=tables, feature_to_config_dict=features,
            optimization_parameters=None if by_table else parameters(optimizer), **others)

    def model_fn(features, labels, mode, params):
        parts = [features['dense']]
        if columns:
            parts.append(tf.keras.layers.DenseFeatures(plain)(features))
            of_history, _ = tf.keras.experimental.SequenceFeatures([sequence])(features)
            parts.append(tf.reduce_mean(of_history, 1))
        else:
            parts += [features[name] if name != 'history' else tf.reduce_mean(features[name], 1)
                      for name in names]
        logits = tf.layers.dense(tf.concat(parts, 1), 1, name='top')
        loss = tf.losses.mean_squared_error(labels, logits)
        train_op = None
        if mode == tf.estimator.ModeKeys.TRAIN:
            train_op = tf.tpu.CrossShardOptimizer(tf.train.AdagradOptimizer(0.1)).minimize(
                loss, tf.train.get_global_step())
        per_sample = tf.tile(tf.reshape(loss, [1, 1]), [params['batch_size'], 1])
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op,
            eval_metrics=(lambda error: {'error': tf.metrics.mean(error)}, [per_sample]),
            host_call=(lambda error: [tf.reduce_mean(error)], [per_sample])
            if host_call else None)

    estimator = tpu.TPUEstimator(
        model_fn, model_dir=model_dir, config=tpu.RunConfig(
            master=MASTER, tpu_config=tpu.TPUConfig(
                iterations_per_loop=2,
                per_host_input_for_training=getattr(tpu.InputPipelineConfig, per_host))),
        train_batch_size=BATCH, eval_batch_size=BATCH, embedding_config_spec=spec)
    estimator.train(lambda params: _dataset(names, params['batch_size']), max_steps=STEPS)
    estimator.evaluate(lambda params: _dataset(names, params['batch_size']), steps=1)


def build_raw(name):
    """Builds one of RAW_JOBS, a loop that is written by hand, in the default graph."""
    hosts, cores, settings = RAW_JOBS[name]
    _build_raw(hosts, cores, **settings)


def _build_raw(hosts, cores, optimizer='adagrad', ragged=False, strategy='div', rows=22,
               dynamic=False, by_table=False, inference=False):
    from tensorflow.python.tpu import tpu_embedding, tpu_embedding_gradient
    tables, features = _configs(optimizer, rows, dynamic, by_table)
    embedding = tpu_embedding.TPUEmbedding(
        tables, features, BATCH, tpu_embedding.INFERENCE if inference else tpu_embedding.TRAINING,
        optimization_parameters=None if inference else parameters(optimizer),
        partition_strategy=strategy, device_config=tpu_embedding.DeviceConfig(
            num_hosts=hosts, num_cores=hosts * cores, job_name=f'/job:{JOB}'))
    per_core = []
    for core in range(hosts * cores):
        with tf.device(embedding.hosts[core // cores]):
            per_core.append(_enqueued(tpu_embedding, features, embedding.batch_size_per_core,
                                      ragged))
    embedding.generate_enqueue_ops(per_core, ragged=ragged)
    step = tf.train.get_or_create_global_step()
    if not inference:
        dummies, _ = tpu_embedding_gradient.create_dummy_table_variables(embedding)

    def computation():
        activations = embedding.get_activations()
        if inference:
            return [tf.add_n([tf.reduce_sum(value) for value in activations.values()])]
        hooked = tpu_embedding_gradient.hook_dummy_table_variables_to_activations(
            embedding, activations, dummies)
        loss = tf.add_n([tf.reduce_sum(value ** 2) for value in hooked.values()])
        train_op = tf.tpu.CrossShardOptimizer(
            tf.train.GradientDescentOptimizer(0.1)).minimize(loss, step)
        gradients = tpu_embedding_gradient.get_gradients_through_dummy_table_variables(embedding)
        send = embedding.generate_send_gradients_op(gradients, step)
        with tf.control_dependencies([train_op, send]):
            return [tf.identity(loss)]

    tf.tpu.shard(computation, num_shards=hosts * cores)
    made = embedding.create_variables_and_ops()
    made.load_ops()
    if not inference:
        made.retrieve_ops()
    tf.tpu.initialize_system(embedding_config=embedding.config_proto, job=JOB)
    tf.tpu.shutdown_system(job=JOB)


def _enqueued(tpu_embedding, features, batch_size, ragged):
    """The ids of one core by feature."""
    sparse = _ids(batch_size)
    if ragged:
        splits = tf.range(0, 2 * batch_size + 1, 2, tf.int64)
        one = tf.RaggedTensor.from_row_splits(sparse.values, splits, validate=False)
        return {name: tpu_embedding.RaggedEnqueueData.from_ragged_tensor(one) for name in features}
    return {name: tpu_embedding.EnqueueData.from_sparse_tensor(
        sparse, _ids(batch_size, tf.float32) if name == 'liked' else None) for name in features}
