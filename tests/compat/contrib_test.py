"""The small `tf.contrib`: its numbers, redone by hand, and what it says of what it lacks."""

import importlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.processes import ROOT, run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.compat.contrib import opt
from estimator_tpu_embedding.compat.contrib.hparams import HParams

ete.install()  # The areas take names of it.
place = importlib.import_module('estimator_tpu_embedding.compat.contrib.contrib_modules')


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def after(train_op, variable):
    """A variable after one step."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        return session.run(variable).tolist()


def variable(value, resource=True, name='w'):
    return tf.get_variable(name, initializer=tf.constant(value), use_resource=resource)


def test_embed_sequence_is_the_layer_that_tf_slim_lacks():
    embed = place.AREAS['layers']['embed_sequence']
    rows = embed([[1, 1], [0, 1]], 2, 3, initializer=tf.ones_initializer())
    same = embed([[1, 1], [0, 1]], 2, 3, scope='EmbedSequence', reuse=True, unique=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(rows - same).tolist() == np.zeros([2, 2, 3]).tolist()
    assert tf.trainable_variables()[0].op.name == 'EmbedSequence/embeddings'


# optimizers; `resource=False` is what variables are without v2 behaviour

@pytest.mark.parametrize('resource', [True, False])
def test_lazy_adam_leaves_the_rows_alone_that_have_no_gradient(resource):
    w = variable([[1.], [2.], [3.]], resource)
    twice = tf.gather(w, [0, 2, 0])
    optimizer = opt.LazyAdamOptimizer(.1)
    # The first step of Adam is the rate, whatever the gradient; row 0 has one of 1 + 3.
    first = optimizer.minimize(tf.reduce_sum(twice * [[1.], [2.], [3.]]))
    # A second gradient of 2: m = .38, v = .007996, rate .1 sqrt(.001999) / .19, in all .1.
    second = optimizer.minimize(tf.reduce_sum(tf.gather(w, [2]) * 2.))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(first)
        assert session.run(w) == pytest.approx(np.array([[.9], [2], [2.9]]), abs=1e-5)
        m, v = session.run([optimizer.get_slot(w, 'm'), optimizer.get_slot(w, 'v')])
        assert m.tolist() == pytest.approx(np.array([[.4], [0], [.2]]))
        assert v.tolist() == pytest.approx(np.array([[.016], [0], [.004]]), rel=1e-4)
        session.run(second)
        assert session.run(w) == pytest.approx(np.array([[.9], [2], [2.8]]), abs=1e-5)
        assert session.run(optimizer.get_slot(w, 'm')) == pytest.approx(
            np.array([[.4], [0], [.38]]))


@pytest.mark.parametrize('resource', [True, False])
def test_weights_decay_apart_from_the_gradient(resource):
    w = variable(2., resource)
    adam = opt.AdamWOptimizer(.5, learning_rate=.1)
    assert after(adam.minimize(3 * w), w) == pytest.approx(.9)  # 2 - 1 - .1
    momentum = opt.MomentumWOptimizer(.5, .1, .9)
    assert after(momentum.minimize(3 * w), w) == pytest.approx(.7)  # 2 - 1 - .3
    with tf.variable_scope('other'):
        other = variable(2., resource)
    assert after(adam.minimize(3 * w, decay_var_list=[other]), w) == pytest.approx(1.9)
    assert after(adam.minimize(3 * w, decay_var_list=[]), w) == pytest.approx(.9)


def test_lars_has_a_rate_in_proportion_to_the_norm_of_the_variable():
    w = variable([3., 4.])  # The norm is 5 and that of the gradient 1, so .1 * 5 / (1 + .2 * 5).
    optimizer = opt.LARSOptimizer(1., momentum=0., weight_decay=.2, eeta=.1)
    assert after(optimizer.minimize(tf.reduce_sum(w * [.6, .8])), w) == pytest.approx([2.7, 3.6])


# hyper-parameters

def test_hparams_keep_the_types_of_their_first_values():
    hparams = HParams(rate=.5, steps=3, flags=[True, False], name='a')
    hparams.parse('rate=2,steps=4,flags[1]=true,name=b c')
    assert hparams.values() == {'rate': 2., 'steps': 4, 'flags': [True, True], 'name': 'b c'}
    assert (hparams.rate, 'rate' in hparams, 'no' in hparams) == (2., True, False)
    assert hparams.get('no', 7) == 7 and hparams.get('steps', 7) == 4
    assert hparams.parse_json('{"steps": 9}').steps == 9
    assert HParams(**hparams.values()).to_json() == hparams.to_json()
    hparams.add_hparam('new', 1)
    hparams.del_hparam('rate')
    assert sorted(hparams.values()) == ['flags', 'name', 'new', 'steps']
    assert not hasattr(hparams, 'rate')


@pytest.mark.parametrize('text, message', [
    ('steps=1.5', 'Could not parse'), ('no=1', 'Unknown'), ('steps', 'Malformed'),
    ('steps=[1,2]', 'Must not pass a list'), ('flags=true', 'Must pass a list'),
    ('steps=1,steps=2', 'Multiple'), ('flags=[1],flags[0]=1', 'Multiple'),
    ('flags[0]=[1]', 'list index'), ('flags[0]=maybe', 'Could not parse')])
def test_hparams_refuse_assignments(text, message):
    with pytest.raises(ValueError, match=message):
        HParams(steps=3, flags=[True, False]).parse(text)


# summaries

def test_summaries_are_written_at_their_steps_with_the_old_kinds(tmp_path):
    names = place.AREAS['summary']
    with names['create_file_writer'](str(tmp_path)).as_default():
        with names['always_record_summaries']():
            names['scalar']('loss', tf.constant(2.), step=tf.constant(7, tf.int64))
            names['histogram']('weights', tf.constant([1., 2.]), step=8)
            names['image']('picture', tf.zeros([1, 2, 2, 3]), step=9)
            names['scalar']('accuracy', tf.constant(.5), family='eval', step=9)
        names['scalar']('unwanted', tf.constant(2.), step=7)  # Nothing is recorded by default.
        every = tf.placeholder(tf.int64, [])
        with names['record_summaries_every_n_global_steps'](2, every):
            names['scalar']('rate', tf.constant(.1), step=every)
        assert len(names['all_summary_ops']()) == 6
        with tf.Session() as session:
            session.run(names['summary_writer_initializer_op']())
            for step in (3, 4):
                session.run(names['all_summary_ops'](), {every: step})
            session.run(names['flush']())
    path, = tmp_path.iterdir()
    found = [(value.tag, event.step, value.WhichOneof('value'))
             for event in tf.train.summary_iterator(str(path)) for value in event.summary.value]
    assert sorted(set(found)) == [
        ('eval/eval/accuracy', 9, 'simple_value'), ('loss', 7, 'simple_value'),
        ('picture/image/0', 9, 'image'), ('rate', 4, 'simple_value'), ('weights', 8, 'histo')]


def test_the_areas_are_found_by_every_path_and_say_what_they_lack():
    done = run_python(ROOT / 'tests' / 'scripts' / 'contrib_areas.py', loaded=True)
    assert done.returncode == 0
    assert [line.removeprefix('[etpe] ') for line in done.stdout.splitlines()] == [
        f'tf.contrib.{name} is not provided by install(contrib=True){advice}' for name, advice in (
            ('layers.crossed_column', '; use tf.feature_column.crossed_column'),
            ('rnn', '; use tf.nn.rnn_cell, which has most cells'),
            ('metrics.nonsense', '; use tf.metrics'), ('tpu.nonsense', ''),
            ('crf', '; use the package tensorflow-addons, or write it yourself'),
            ('lookup', '; use tf.lookup, tf.lookup.StaticHashTable'))]
