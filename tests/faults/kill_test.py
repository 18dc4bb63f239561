"""C01, C04: a training job that is killed again and again."""

import pytest
from harness import graphs
from harness.parts import soak_except
from harness.processes import run_harness

pytestmark = pytest.mark.no_rerun


@pytest.mark.timeout(1000)
@pytest.mark.parametrize('kills', soak_except([3, 60], 0))  # One of each kind, or all kinds often.
def test_c01_c04_a_job_that_is_killed_again_and_again_comes_to_the_same_rows(tmp_path, kills):
    done = run_harness('kill_job', tmp_path, '--kills', kills, deadline=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    assert 'variables are equal bit for bit' in done.stdout.splitlines()[-1]


@pytest.mark.soak
@pytest.mark.timeout(1000)
@graphs.needs_native
def test_c01_a_job_with_tables_on_a_disk_comes_to_the_rows_of_one_in_memory(tmp_path):
    folder, tables = tmp_path / 'job', tmp_path / 'tables'
    folder.mkdir()
    tables.mkdir()
    done = run_harness('kill_job', folder, '--kills=12', f'--tables={tables}', deadline=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    assert 'variables are equal bit for bit' in done.stdout.splitlines()[-1]
