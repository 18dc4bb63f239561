"""What others take of the CPU time while a benchmark measures is known, and not measured."""

import itertools

import pytest


def process(folder, number, parent, ticks, flags=0):
    """Writes what Linux shows of a process with a nasty name; see proc_pid_stat(5)."""
    (folder / str(number)).mkdir()
    (folder / str(number) / 'stat').write_text(
        f'{number} (a) b (c) S {parent} 0 0 0 0 {flags} 0 0 0 0 ' + ' '.join(map(str, ticks))
        + ' 20 0 1')


def test_own_processes_are_no_others(bench, tmp_path, monkeypatch):
    quiet = bench('quiet')
    monkeypatch.setattr(quiet, '_TICK', .01)
    (tmp_path / 'stat').write_text('cpu  9 9 9 9 9 9 9 7 9 9\ncpu0 1 1\n')
    for number, parent, ticks in ((1, 0, (1, 2, 30, 40)), (5, 1, (100, 0, 0, 0)),
                                  (6, 5, (0, 200, 0, 0)), (7, 6, (0, 0, 300, 0)),
                                  (8, 1, (400, 0, 0, 0))):
        process(tmp_path, number, parent, ticks)
    process(tmp_path, 2, 0, (0, 5000, 0, 0), flags=0x00208040)
    # The host took 7 ticks; processes 1 and 8 have 73 and 400. Process 5 is this one, and the
    # kernel's are no others.
    assert quiet.seconds_of_others(5, tmp_path) == pytest.approx(4.8)


@pytest.mark.parametrize('noisy, measured, disturbed', [(False, 3, 2), (True, 1, None)])
def test_a_disturbed_measurement_is_thrown_away_and_counted(
        bench, monkeypatch, noisy, measured, disturbed):
    evidence = bench('evidence')
    shares = iter((.5, .03, .02))
    monkeypatch.setattr(evidence.quiet.Watch, '__exit__', lambda self, *_: setattr(
        self, 'share', next(shares)))
    figures, number = evidence.Figures(noisy), itertools.count(1)
    assert figures.quiet(lambda: next(number)) == measured
    assert figures.disturbed == disturbed


def test_who_is_never_alone_is_told(bench, monkeypatch):
    evidence = bench('evidence')
    monkeypatch.setattr(evidence.quiet.Watch, '__exit__', lambda self, *_: setattr(
        self, 'share', .5))
    with pytest.raises(evidence.Disturbed, match='others take 50% of the CPU time'):
        evidence.Figures().quiet(int)
