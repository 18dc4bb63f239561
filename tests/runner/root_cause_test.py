import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.runner.root_cause import Failures


def test_the_first_failure_that_is_no_consequence_is_the_cause_and_the_others_are_notes():
    failures = Failures()
    failures.record('infeed of host 0', tf.errors.CancelledError(None, None, 'late'))
    assert failures.root_cause() is None
    failures.record('infeed of host 1', ValueError('broken'))
    failures.record('infeed of host 2', OSError('also'))
    cause = failures.root_cause()
    assert isinstance(cause, ValueError)
    notes = ['raised by the infeed of host 1',
             'then the infeed of host 0 was ended: CancelledError',
             'then the infeed of host 2 failed: also']
    assert cause.__notes__ == notes
    assert failures.root_cause() is cause
    failures.record('infeed of host 3', KeyError('last'))  # Later than somebody asked.
    assert cause.__notes__ == [*notes, "then the infeed of host 3 failed: 'last'"]
    assert failures.root_cause() is cause
