"""H01 to H04, H16 and H18 to H21: losses of workers in a running job; all processes are real.

`harness.cluster_losses` says what each scenario does. The final state must be the undisturbed one
bit for bit, so no step was lost and none was applied twice.
"""

import contextlib
import json
import re
import signal

import pytest
from harness import proxy, workers
from harness.network import require_private_network
from harness.processes import started, until_gone

pytestmark = [pytest.mark.soak, pytest.mark.no_rerun]

LONGEST = 560
OWN = ('undisturbed', 'enqueue', 'lookup', 'update', 'save', 'restore', 'frozen', 'slow', 'beside',
       'evaluated', 'predicted', 'again')


class Results:
    """What scenarios came to, read from the output of their process as far as it is needed."""

    def __init__(self, lines, on_line=lambda line: None):
        self._lines, self._on_line, self._found = lines, on_line, {}

    def __getitem__(self, name):
        while name not in self._found:
            line = next(self._lines)
            self._on_line(line)
            if line.startswith('scenario '):
                result = json.loads(line.removeprefix('scenario '))
                self._found[result['name']] = result
        return self._found[name]


def losses(folder, *arguments):
    require_private_network()
    return started('-m', 'harness.cluster_losses', folder, *arguments, deadline=LONGEST)


@pytest.fixture(scope='module')
def own(tmp_path_factory):
    """The scenarios with two workers that the client starts."""
    with losses(tmp_path_factory.mktemp('own'), *OWN) as (_, lines):
        yield Results(lines)


def lines_with(text, result):
    return [line for line in result['told'] if text in line]


@pytest.mark.parametrize('phase, step, host', [
    ('enqueue', None, 1), ('lookup', 5, 0), ('update', 5, 1), ('save', 7, 1)])
def test_h01_h20_a_worker_that_is_killed_costs_no_step_and_counts_none_twice(
        own, phase, step, host):
    result = own[phase]
    assert result['error'] is None
    assert result['digest'] == own['undisturbed']['digest']
    told, = lines_with('E721', result)
    assert f'host {host}, worker 127.0.0.1:' in told
    assert 'exit -9: possibly memory; table bytes on this host: 640 B' in told
    assert step is None or f'after step {step}:' in told


def test_h20_a_worker_that_may_take_no_more_memory_is_named(tmp_path):
    with losses(tmp_path, 'limited') as (_, lines):
        error = Results(lines)['limited']['error']
    assert re.match(r'ConfigError: E744 worker 127[.]0[.]0[.]1:\d+ of host [01]: rows and slots '
                    r'must fit its memory; got OOM when allocating .*4000000,64', error)


def test_h01_a_worker_that_is_killed_while_another_loss_is_repaired_is_a_second_loss(own):
    result = own['restore']
    assert result['error'] is None and result['digest'] == own['undisturbed']['digest']
    first, second = lines_with('E721', result)
    assert 'host 1, ' in first and 'host 0, ' in second


def test_h03_a_frozen_worker_is_lost_and_its_step_is_not_tried_again(own):
    result = own['frozen']
    assert result['error'] is None and result['digest'] == own['undisturbed']['digest']
    told, = lines_with('E721', result)
    seconds = float(re.search(r'host 1, .* frozen or cut off: no answer for ([\d.]+) s', told)[1])
    assert seconds >= 30


def test_h18_a_worker_that_is_only_slow_is_not_lost(own):
    result = own['slow']
    assert result['error'] is None and not lines_with('E721', result)
    assert result['digest'] == own['undisturbed']['digest']


def test_h02_a_worker_that_died_between_two_jobs_is_replaced(own):
    result = own['beside']
    assert result['error'] is None and result['digest'] == own['undisturbed']['digest']


def test_h01_an_evaluation_begins_again_and_a_prediction_that_gave_rows_does_not(own):
    assert own['evaluated']['error'] is None and lines_with('E721', own['evaluated'])
    assert own['predicted']['error'].startswith('InputPipelineError: E524 predict')


def test_h21_the_third_same_failure_at_one_step_ends_the_job(own):
    error = own['again']['error']
    assert error.startswith('SessionLostError: E722 train: the same failure at one step')
    assert 'number 3 after step 5: E721 host 1, ' in error
    assert len(lines_with('E721', own['again'])) == 2


def test_h01_five_random_kills_of_a_running_job_leave_no_trace(tmp_path):
    with losses(tmp_path, 'kills-5') as (_, lines):
        assert Results(lines)['kills-5']['error'] is None


@contextlib.contextmanager
def foreign(folder, scenarios, disturb=lambda: None, repair=lambda: None, front=lambda one: one):
    """The scenarios over two workers of others; yields their results and these workers.

    Args:
      folder: of the jobs.
      scenarios: names.
      disturb: called when the scenario `asked` asks for it.
      repair: called when a loss was told.
      front: returns the address that is given for that of worker 1.
    """
    with workers.running(2) as running:
        addresses = [running.addresses[0], front(running.addresses[1])]
        with losses(folder, *scenarios, '--workers', ','.join(addresses)) as (process, lines):
            def on_line(line):
                if line == 'disturb':
                    disturb(running)
                    process.stdin.write('\n')
                    process.stdin.flush()
                if line.startswith('told') and 'after step' in line:
                    repair(running)
            yield Results(lines, on_line), running


def test_h03_h04_workers_of_others_begin_anew_after_a_loss_whoever_starts_them(tmp_path):
    def restart(running):
        running.kill(1)
        running.start(1)
        running.wait(1)

    def thaw(running):
        running.processes[1].send_signal(signal.SIGCONT)

    with foreign(tmp_path, ['undisturbed', 'frozen', 'asked'], restart, thaw) as (results, running):
        before = running.processes[0].pid
        want = results['undisturbed']['digest']
        frozen = results['frozen']
        assert frozen['error'] is None and frozen['digest'] == want
        assert 'no answer for' in lines_with('E721', frozen)[0]
        empty = results['asked']
        assert empty['error'] is None and empty['digest'] == want
        assert lines_with('after step 5: E7', empty)
        assert running.processes[0].pid == before and running.processes[0].poll() is None


@pytest.mark.parametrize('how', ['delay', 'cut', 'drop'])
def test_h03_h19_a_bad_connection_delays_steps_but_repeats_none(tmp_path, how):
    relays = []

    def front(target):
        relays.append(stack.enter_context(proxy.before(target)))
        return relays[0].address

    def disturb(running):
        if how == 'delay':
            relays[0].delay = .2
        elif how == 'cut':
            relays[0].cut()
        else:
            relays[0].drops = True

    def repair(running):
        relays[0].drops = False
        relays[0].cut()  # A peer that lost pieces would wait for them.

    with contextlib.ExitStack() as stack:
        with foreign(tmp_path, ['undisturbed', 'asked'], disturb, repair, front) as (results, _):
            assert results['asked']['error'] is None
            assert results['asked']['digest'] == results['undisturbed']['digest']
            told = lines_with('E721', results['asked'])
            assert bool(told) == (how == 'drop') or how == 'cut'


def pids_in(line):
    return [int(pid) for pid in re.findall(r'\(process (\d+)\)', line)]


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_h03_a_signal_ends_a_job_at_once_whose_worker_is_frozen(tmp_path, number):
    with losses(tmp_path, 'frozen') as (process, lines):
        pids = []
        for line in lines:
            pids += pids_in(line)
            if line.startswith('struck'):
                break
        process.send_signal(number)
        rest = list(lines)
        # Or `started` kills it, which is neither.
        assert process.wait() in (-number, 1, 130), rest
        until_gone(pids)
