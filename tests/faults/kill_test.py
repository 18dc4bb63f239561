"""C01, C04: a training job that is killed again and again."""

import pytest
from harness.processes import run_harness


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_c01_c04_a_job_that_is_killed_twelve_times_comes_to_the_same_rows(tmp_path):
    done = run_harness('kill_job', tmp_path, '--kills', 12, deadline=140)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    assert 'variables are equal bit for bit' in done.stdout.splitlines()[-1]
