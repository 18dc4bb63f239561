"""C06: disks that get full, real ones, in a mount namespace."""

import json
import re

import pytest
from harness import groups
from harness.processes import run_harness

pytestmark = pytest.mark.no_rerun
NAMESPACE = ('unshare', '-rm')
SIZES = [f'{kibibytes}k' for kibibytes in (4, 8, 12, 16, 24, 32, 40, 44, 48, 52, 64, 100)]


def run_on_disks(module, *arguments):
    """Runs a module of the harness where it may mount, or skips the test."""
    if groups.run([*NAMESPACE, 'true']).returncode:
        pytest.skip('this system lets nobody mount')
    done = run_harness(module, *arguments, before=NAMESPACE)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_c06_whenever_the_disk_is_full_the_error_says_so_and_nothing_is_lost(tmp_path, tiny):
    lines = run_on_disks('sweeps', tiny.directory, tmp_path, *SIZES)
    assert [line.split(':')[0] for line in lines] == SIZES
    steps = [int(re.search(r': E621 step (\d+): ', line).group(1)) for line in lines]
    assert steps == sorted(steps) and steps[0] == 1 and steps[-1] > 4
    for line in lines:
        assert 'No space left on device' in line
        assert re.search(r'; [\d,]+ bytes were written, [\d,]+ are free, '
                         r'the last checkpoint has [\d,]+\.', line)


@pytest.fixture(scope='module')
def trainings(tmp_path_factory):
    """What became of trainings, by the size of the disk."""
    lines = map(json.loads, run_on_disks('disk_job', tmp_path_factory.mktemp('disks')))
    return {line['size']: line for line in lines}


@pytest.mark.parametrize('size', ['760k', '1m'])
def test_c06_a_training_ends_when_its_checkpoint_does_not_fit(trainings, size):
    found = trainings[size]
    assert found['class'] == 'CheckpointWriteError'
    failed = int(re.match(r'E621 step (\d+): ', found['text']).group(1))
    assert failed > 4 and found['step'] == failed - 4
    assert 'No space left on device' in found['text'] and 'are free' in found['text']
    assert found['beside'] == ['.ete-lock', 'checkpoint', 'graph.pbtxt']


def test_c06_a_training_ends_when_not_even_its_graph_fits(trainings):
    found = trainings['190k']
    assert found['class'] == 'CheckpointWriteError' and found['step'] is None
    assert re.match('E621 model_dir .*disk: .*graph.pbtxt.*No space left.* bytes are free',
                    found['text'])
    assert not [name for name in found['beside'] if name.startswith('graph.pbtxt')]
