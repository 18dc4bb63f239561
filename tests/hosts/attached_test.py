"""A function attaches the variables of an engine once, until it may have written one."""

import tensorflow as tf

from estimator_tpu_embedding.hosts.native import AttachedIn


def found_after(use, *, before=lambda variables: None):
    """Whether what a function noted is found again after it has used the variables."""
    variables = [tf.Variable([1.]), tf.Variable([2.])]
    attached, answers = AttachedIn([variable.handle for variable in variables]), []

    @tf.function(autograph=False)
    def function():
        answers.append(attached.find())
        before(variables)
        noted = tf.constant(7)
        attached.note(noted)
        use(variables)
        answers.append(attached.find() is not None)
        attached.note(tf.constant(8))
        answers.append(attached.find() is not None)

    function.get_concrete_function()
    assert answers[0] is None
    return answers[1:]


def test_reads_of_variables_leave_them_attached():
    assert found_after(lambda variables: None) == [True, True]
    assert found_after(lambda variables: [one.read_value() for one in variables]) == [True, True]


def test_writes_and_calls_that_take_a_handle_may_detach_it_until_the_next_time():
    def write_last(variables):
        variables[1].assign([3.], read_value=False)
        return tf.constant(0)

    for write in (
            write_last,
            lambda variables: tf.cond(variables[0][0] > 1, lambda: write_last(variables),
                                      lambda: tf.constant(1)),
            lambda variables: tf.function(lambda: write_last(variables))(),
            lambda variables: tf.py_function(lambda: None, [], [])):
        assert found_after(write) == [False, True]
        assert found_after(lambda variables: None, before=write) == [True, True]


def test_other_functions_attach_by_themselves():
    variable = tf.Variable([1.])
    attached = AttachedIn([variable.handle])

    def inner():
        assert attached.find() is None
        attached.note(tf.constant(2))
        return tf.constant(0)

    @tf.function(autograph=False)
    def outer():
        attached.note(tf.constant(1))
        tf.cond(variable[0] > 0, inner, inner)
        tf.function(inner)()

    outer.get_concrete_function()
