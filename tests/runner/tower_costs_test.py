"""What a tower costs does not depend on the number of towers; counted, never timed."""

import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding import _tf
from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator.tf_tpu import CrossShardOptimizer
from estimator_tpu_embedding.runner.gradient_capture import GradientCapture
from estimator_tpu_embedding.runner.towers import Towers


def train(loss):
    return CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1)).minimize(loss)


def hooked_towers(tables, cores, optimizer=None):
    """Towers whose loss is the sum of a weight and of an activation per table; their operations."""
    plan = resolve(
        [TableSpec(name=f't{n}', vocabulary_size=5, dimension=2) for n in range(tables)],
        [FeatureSpec(name=f'f{n}', table=f't{n}') for n in range(tables)],
        Topology(), batch_size=2, optimizer=Adagrad(learning_rate=.1))
    capture = GradientCapture(plan)

    def model(core):
        hooked = capture.hook(core, {f'f{n}': tf.ones([2, 2]) for n in range(tables)})
        return CrossShardOptimizer(optimizer or tf.train.GradientDescentOptimizer(1.)).minimize(
            tf.reduce_sum(tf.add_n([*hooked.values(), tf.get_variable('weight', [2, 2])])))

    towers = Towers(cores)
    towers.build(model)
    return towers.operations()


def number_of(operations, *kinds):
    return sum(operation.type in kinds for operation in operations)


def test_a_feature_of_a_core_has_one_operation_for_its_gradient():
    with tf.Graph().as_default() as graph:
        first, *others = hooked_towers(5, 3)
    for operations in others:
        assert number_of(operations, 'Print') == 5
        # The weight alone, and no zeros for another output of `Print`.
        assert number_of(operations, 'ReadVariableOp') == 1
        assert number_of(operations, 'ResourceApplyGradientDescent') == 1
        assert number_of(operations, 'ZerosLike') == 0
        assert sum(each.name.startswith('zeros') for each in operations) == 1
        assert len(operations) == len(others[0])
    # Tower 0 changes all dummies. Gradients have a sum for the weight and one for all dummies;
    # the third is that of the model.
    assert number_of(first, 'ResourceApplyGradientDescent') == 5 + 1
    assert number_of(first, 'AddN') == 3
    # A dummy has one read for all cores, beside that of every variable.
    assert sum(each.type == 'ReadVariableOp' and 'dummy' in each.inputs[0].name
               for each in graph.get_operations()) == 2 * 5


@pytest.mark.parametrize('make', [tf.train.AdamOptimizer, tf.train.FtrlOptimizer])
def test_slots_are_the_same_whatever_the_number_of_cores(make):
    def variables(cores):
        with tf.Graph().as_default():
            hooked_towers(2, cores, make(.1))
            return [each.op.name for each in tf.global_variables()]

    assert variables(1) == variables(3)
    assert sum('dummy' in name for name in variables(1)) == 2 * 2  # two slots of two tables


@pytest.mark.parametrize('further', [0, 1])
def test_a_gradient_that_only_some_cores_have_is_an_error_that_names_the_variable(further):
    def model(core):
        variables = [tf.get_variable(f'v{n}', []) for n in range(2)]
        return train(tf.add_n(variables[:2 if core == further else 1]))

    with tf.Graph().as_default(), pytest.raises(
            ConfigError, match=rf'E451 model_fn.*a gradient of "v1:0" on cores \[{further}\] only'):
        Towers(2).build(model)


def loop(x):
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]


def second(x):
    return tf.gradients(x**3, x)[0]


def own(x):
    return tf.custom_gradient(lambda y: (y * y, lambda dy: 5 * dy))(x)


def of_slices(x):
    return tf.reduce_sum(tf.gather(tf.stack([x, 2 * x]), [0, 0, 1]))


@pytest.mark.parametrize('function', [loop, second, own, of_slices, tf.stop_gradient])
def test_gradients_that_look_less_far_are_the_same_graph(function):
    def built():
        with tf.Graph().as_default() as graph:
            x, y = (tf.Variable(value, use_resource=True) for value in (1., 2.))
            function(x * y)  # What a tower before has made of the variables.
            gradients = tf.gradients([function(x) * y, x], [x, y])
            return [each if each is None else each.name for each in gradients], [
                (each.type, each.name, [tensor.name for tensor in each.inputs],
                 [other.name for other in each.control_inputs])
                for each in graph.get_operations()]

    expected = built()
    with _tf.bounded_gradients():
        assert built() == expected
