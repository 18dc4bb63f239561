"""Row H22: what is forked beside TensorFlow is refused where it would hang, and works elsewhere."""

from harness.processes import run_harness

CALLS = ['train', 'plain train', 'plain Estimator', 'evaluate', 'predict', 'export', 'midlevel']


def test_h22_a_child_forked_after_a_training_is_refused_and_one_before_it_trains(tmp_path):
    done = run_harness('fork_job', tmp_path, *CALLS)
    assert done.returncode == 0
    first, *refused, last = done.stdout.splitlines()
    # A fork before anything of TensorFlow ran, and loaders that fork, work.
    assert (first, last) == ('train works', 'parent 4')
    for line, call in zip(refused, CALLS, strict=True):
        own = {'plain train': 'train', 'plain Estimator': 'train',
               'midlevel': 'TPUEmbedding'}.get(call, call)
        assert line.startswith(f'{call} CallError E537 {own}: it must run in the process in which')
        assert 'spawn' in line and 'subprocess' in line and 'in the parent' in line
