"""What a whole job with a large table holds, in real processes of their own."""

import json

import pytest
from harness.processes import ROOT, run_python

ROWS, WIDTH = 1_000_000, 64
TABLES = 2 * ROWS * WIDTH * 4  # Bytes of table and slot: 488 MiB.


def ratios(model_dir, hosts):
    """Per phase the highest RSS, without that of the same job with a small table, over TABLES."""
    done = run_python(ROOT / 'tools' / 'bench' / 'memory.py', f'--rows={ROWS}',
                      f'--width={WIDTH}', f'--hosts={hosts}', f'--child={model_dir}',
                      deadline=290)
    assert done.returncode == 0
    found = json.loads(done.stdout.splitlines()[-1])
    return [(name, (peak - found['base']) / TABLES) for name, peak, _ in found['phases']]


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_no_phase_of_a_job_holds_a_second_copy_of_its_tables(tmp_path):
    phases = ratios(tmp_path, hosts=1) + ratios(tmp_path, hosts=3)
    assert [name for name, _ in phases] == [
        'init', 'save', 'train', 'save', 'train', 'save',
        'restore', 'save', 'train', 'save', 'train', 'save']
    # A copy of either table would be .5 more. A tenth is what a batch takes beyond the base.
    assert max(ratio for _, ratio in phases) < 1.25, phases
    assert min(ratio for _, ratio in phases) > .9, phases  # The tables are in it.


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_loops_leave_no_memory_behind():
    done = run_python(ROOT / 'tools' / 'bench' / 'runner.py', '--loops=500', deadline=500)
    assert done.returncode == 0
    _, *mebibytes = done.stdout.splitlines()[-1].split()
    assert len(mebibytes) == 10
    after = [float(each) for each in mebibytes[2:]]  # 100 loops warm it up.
    # Of 400 loops: so none leaves more than 20 KiB behind.
    assert max(after) - after[0] < 8, mebibytes
