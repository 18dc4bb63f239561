"""C01, C04: a training job that is killed again and again."""

import pytest
from harness.parts import soak_except
from harness.processes import run_harness

pytestmark = pytest.mark.no_rerun


@pytest.mark.timeout(1000)
@pytest.mark.parametrize('kills', soak_except([3, 60], 0))  # One of each kind, or all kinds often.
def test_c01_c04_a_job_that_is_killed_again_and_again_comes_to_the_same_rows(tmp_path, kills):
    done = run_harness('kill_job', tmp_path, '--kills', kills, deadline=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    assert 'variables are equal bit for bit' in done.stdout.splitlines()[-1]
