"""What the processes of a job hold of its tables: each worker its own part, nobody else any."""

import json

import pytest
from harness.network import require_private_network
from harness.processes import run_harness

ROWS, WIDTH, HOSTS = 6_000_000, 128, 2
PART = 2 * ROWS * WIDTH * 4 / HOSTS  # Bytes of rows and accumulators on each: 2.9 GiB.


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize('first', ['drawn', 'given'])
def test_a_worker_holds_its_part_once_and_the_client_none_of_any_table(tmp_path, first):
    require_private_network()
    done = run_harness('cluster_memory_job', tmp_path, first, ROWS, WIDTH, HOSTS, deadline=800)
    assert done.returncode == 0, done.stderr
    phases = json.loads(done.stdout.splitlines()[-1])
    assert list(phases) == ['create', 'train', 'save', 'restore', 'move', 'evaluate']
    ratios = {phase: [one / PART for one in found] for phase, found in phases.items()}
    for phase, (client, *workers) in ratios.items():
        # A slice of first values is 16 MiB, and for each host there are a few of it on the way.
        assert client < .1, (phase, ratios)
        # An evaluation has no accumulators. Some buffers of messages stay with malloc, the more
        # the busier the machine is.
        assert all((.45 if phase == 'evaluate' else .9) < worker < 1.8 for worker in workers), (
            phase, ratios)
