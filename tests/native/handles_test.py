"""A handle of one process is no engine of another, also if both made their engines alike."""

import pytest
import tensorflow as tf
from harness import native_eager
from harness.processes import path_with_harness, run_python

from estimator_tpu_embedding.native import library

pytestmark = [pytest.mark.soak,  # Another process, with TensorFlow.
              pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())]
OTHER = '''
from harness import native_eager
print(int(native_eager.Opened().handle))
'''


def test_the_handle_of_an_engine_in_another_process_is_refused():
    done = run_python('-c', OTHER, PYTHONPATH=path_with_harness())
    assert done.returncode == 0
    with native_eager.Opened() as own:
        assert own.group([0, 1]).shape.rank == 1
        own.handle, kept = tf.constant(int(done.stdout), tf.int64), own.handle
        with pytest.raises(tf.errors.InvalidArgumentError, match='There is no engine'):
            own.group([0, 1])
        own.handle = kept
