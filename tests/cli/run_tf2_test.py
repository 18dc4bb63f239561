"""`etpe run` ends with the truth about runs of TPUEmbedding, in loops and in the layer of TFRS."""

import re
import textwrap

import pytest
from harness.parts import soak_except
from harness.processes import run_etpe

RATE = r'([\d,]+) examples/s'
LAYER = '''
    import sys
    import tensorflow as tf
    import tensorflow_recommenders as tfrs

    api = tf.tpu.experimental.embedding
    strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver(''))
    replicas = strategy.num_replicas_in_sync

    def batches(context):  # 4 samples for each replica
        return tf.data.Dataset.from_tensors(({'watched': tf.range(4)}, tf.ones([4]))).repeat()

    def data():
        return strategy.distribute_datasets_from_function(
            batches, tf.distribute.InputOptions(experimental_fetch_to_device=False))

    with strategy.scope():
        layer = tfrs.layers.embedding.TPUEmbedding({'watched': api.FeatureConfig(
            api.TableConfig(10, 4, combiner='mean', name='video'))}, api.Adagrad(.1))
        inputs = {'watched': tf.keras.Input((), batch_size=4 * replicas, dtype=tf.int32)}
        model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(layer(inputs)['watched']))
        model.compile('sgd', 'mse', steps_per_execution=int(sys.argv[1]))
'''


def run(tmp_path, code, *arguments, hosts=1, cores=1, status=0):
    """What a script prints, and what `etpe run` says of it in all."""
    (tmp_path / 'job.py').write_text(textwrap.dedent(code))
    done = run_etpe('run', '--hosts', hosts, '--cores', cores, tmp_path / 'job.py', *arguments,
                    loaded=True)
    assert done.returncode == status
    return done.stdout, re.search(r'\[etpe\] in all: (.*)', done.stderr)[1]


@pytest.mark.parametrize('hosts, cores, at_once', soak_except([
    (1, 1, 1), (1, 2, 1), (2, 2, 5), (2, 4, 1)], 2))
def test_fit_and_evaluate_are_told_with_the_steps_and_samples_of_the_global_batch(
        tmp_path, hosts, cores, at_once):
    printed, said = run(tmp_path, LAYER + '''
    model.fit(data(), steps_per_epoch=10, epochs=2, verbose=0)
    model.evaluate(data(), steps=5, verbose=0)
    model.fit(data(), steps_per_epoch=10, verbose=0)

    from estimator_tpu_embedding.hosts import step_clock
    (steps,) = step_clock.totals()
    print(steps.batch_size)
    ''', at_once, hosts=hosts, cores=cores)
    assert int(printed) == hosts * cores * 4
    assert re.fullmatch(
        rf'train 30 steps by TPUEmbedding, {RATE}; '
        rf'evaluate or predict 5 steps by TPUEmbedding, {RATE}; native kernels', said)


LOOP = '''
    import sys, time
    import tensorflow as tf

    api = tf.tpu.experimental.embedding

    def embedding(name, samples=4, **kwargs):
        made = api.TPUEmbedding(api.FeatureConfig(api.TableConfig(
            10, 2, tf.ones_initializer(), name=name)), api.SGD(.1), **kwargs)
        made.build(per_replica_batch_size=samples)
        return made

    def step_of(*objects, training=True):
        @tf.function
        def step(ids, scale):
            for one in objects:
                one.enqueue(ids, training=training)
                activations = one.dequeue()
                if training:
                    one.apply_gradients(activations * scale)
        return step
'''


@pytest.mark.soak
def test_pauses_for_evaluations_and_saves_are_no_time_of_the_training(tmp_path):
    """Of 3 stretches of 20 steps all but the first steps are timed, in less than they all take."""
    seconds, said = run(tmp_path, LOOP + '''
    one = embedding('a')
    train, evaluate = step_of(one), step_of(one, training=False)
    ids, seconds = tf.range(4), 0.
    for pause in (lambda: evaluate(ids, 1.),
                  lambda: tf.train.Checkpoint(one=one).save(sys.argv[1]), lambda: None):
        began = time.monotonic()
        for _ in range(20):
            train(ids, 1.)
        seconds += time.monotonic() - began
        time.sleep(2)
        pause()
    print(seconds)
    ''', tmp_path / 'm')
    found = re.fullmatch(
        rf'train 60 steps by TPUEmbedding, {RATE}; '
        r'evaluate or predict 1 step by TPUEmbedding; native kernels', said)
    assert int(found[1].replace(',', '')) >= int(57 * 4 / float(seconds))


def test_several_objects_are_told_one_by_one(tmp_path):
    _, said = run(tmp_path, LOOP + '''
    both, other = [embedding('a'), embedding('b')], embedding('c')
    train, train_other = step_of(*both), step_of(other)
    for _ in range(3):
        train(tf.range(4), 1.)
    for _ in range(2):
        train_other(tf.range(4), 1.)
    ''')
    assert re.fullmatch(
        rf'train 3, 3, 2 steps by 3 TPUEmbeddings, {RATE}; native kernels', said)


@pytest.mark.parametrize('pipelined', [False, True])
def test_a_run_that_fails_is_told_up_to_its_last_update(tmp_path, pipelined):
    """In pipelined mode the update that fails is the one of the step before."""
    _, said = run(tmp_path, LOOP + f'''
    one = embedding('a', pipeline_execution_with_tensor_core={pipelined})
    train = step_of(one)
    for number in range(9):
        train(tf.range(4), float('nan') if number == 5 else 1.)
    ''', status=1)
    assert re.fullmatch(
        rf'train {6 if pipelined else 5} steps by TPUEmbedding, {RATE}; native kernels', said)
