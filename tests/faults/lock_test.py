"""C26: one job at a time in a model_dir."""

import os

import pytest
from harness.processes import started

from estimator_tpu_embedding.checkpoint.model_dir import claimed
from estimator_tpu_embedding.errors import CheckpointError

JOB = '''
import sys
from estimator_tpu_embedding.checkpoint.model_dir import claimed
with claimed(sys.argv[1]):
    print('claimed', flush=True)
    sys.stdin.read()
'''


def refused(directory):
    """What a second job is told."""
    with pytest.raises(CheckpointError, match='E622 model_dir') as caught:
        with claimed(directory):
            pass
    return str(caught.value)


def test_c26_a_second_job_is_told_who_trains_there_until_that_one_is_dead(tmp_path, caplog):
    with started('-c', JOB, tmp_path) as (process, lines):
        assert next(lines) == 'claimed'
        text = refused(str(tmp_path))
        assert f'pid {process.pid} on {os.uname().nodename} since 20' in text
        process.kill()
        process.wait()
        with claimed(str(tmp_path)):  # A dead process holds nothing, and a job of this one does.
            assert f'pid {os.getpid()} on' in refused(str(tmp_path))
    assert f'did not end in order: pid {process.pid}' in caplog.text
    caplog.clear()
    with claimed(str(tmp_path)):
        pass
    assert 'did not end in order' not in caplog.text


@pytest.mark.parametrize('note', [
    b'', b'{}', b'\xff' * 9000, b'{"pid": "x"}', b'[' * 5000,
    b'{"pid": 1e999, "host": "a", "since": "b"}', b'{"pid": "' + b'9' * 4000 + b'"}'])
def test_c26_a_note_that_cannot_be_read_locks_nobody_out(tmp_path, note):
    (tmp_path / '.ete-lock').write_bytes(note)
    with claimed(str(tmp_path)):
        assert f'pid {os.getpid()}' in refused(str(tmp_path))
