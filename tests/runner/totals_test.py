"""The line of all runs says what was trained, where it lies, and nothing that is not so."""

import pytest

from estimator_tpu_embedding.hosts import step_clock
from estimator_tpu_embedding.hosts.step_clock import Figures, Total
from estimator_tpu_embedding.runner import progress, totals
from estimator_tpu_embedding.runner.progress import RunReport


@pytest.fixture(autouse=True)
def nothing_yet(monkeypatch):
    for module, name in ((progress, '_reports'), (step_clock, '_records'),
                         (totals, '_own_loops')):
        monkeypatch.setattr(module, name, [])


def report(steps, *, seconds=2., batch_size=8, verb='train', **kwargs):
    progress._reports.append(RunReport(verb, batch_size, steps=steps, seconds=seconds, **kwargs))


def test_without_any_training_the_line_says_who_did_not_train():
    assert totals.totals() == 'nothing was trained by an Estimator or a TPUEmbedding'


def test_a_single_step_without_tables_has_no_plural_and_no_figure_of_tables(tmp_path):
    report(1, directory=str(tmp_path))
    assert totals.totals() == (  # 1 x 8 examples in 2 seconds
        f'train 1 step, 4 examples/s, saved in {tmp_path}; '
        'time: input 0 %, dense 0 %, other 100 %')


def test_plain_estimators_are_told_by_class_and_directory(tmp_path):
    places = [tmp_path / name for name in 'abcde']
    for place in places:
        place.mkdir()
        report(3, batch_size=0, trainer='DNNClassifier', directory=str(place))
    report(4, trainer='TPUEstimator without TPU', directory=str(tmp_path / 'deleted'))
    report(5, trainer='LinearClassifier', batch_size=0)
    assert totals.totals() == (
        f'train 15 steps by DNNClassifier, 1.5 steps/s, saved in {places[0]}, {places[1]}, '
        f'{places[2]} and 2 more; train 4 steps by TPUEstimator without TPU, 16 examples/s; '
        'train 5 steps by LinearClassifier, 2.5 steps/s, nothing saved')


def test_a_directory_is_not_said_to_hold_what_another_training_did_not_save(tmp_path):
    report(3, batch_size=0, trainer='LinearClassifier', directory=str(tmp_path))
    report(2, batch_size=0, trainer='LinearClassifier')
    assert totals.totals() == (  # 5 steps in 4 seconds
        f'train 5 steps by LinearClassifier, 1.2 steps/s, some of it saved in {tmp_path}')


NONE, ONE = Figures(0, 0, 0.), Figures(1, 0, 0.)


@pytest.mark.parametrize('batch_sizes, trained, looked_up, said', [
    ([8], [NONE], [NONE], 'nothing was trained by an Estimator or a TPUEmbedding'),
    ([8, 8], [NONE, ONE], [NONE, NONE], 'train 1 step by TPUEmbedding; native kernels'),
    # 9 timed steps of 8 samples in 2 seconds
    ([8], [Figures(10, 9, 2.)], [NONE],
     'train 10 steps by TPUEmbedding, 36 examples/s; native kernels'),
    ([0], [Figures(10, 9, 2.)], [NONE],
     'train 10 steps by TPUEmbedding, 4.5 steps/s; native kernels'),
    # 9 x 8 + 3 x 4 samples in 2 + 1 seconds; what has no time has no share in the rate
    ([8, 4, 0], [Figures(10, 9, 2.), Figures(4, 3, 1.), ONE], [NONE, ONE, NONE],
     'train 10, 4, 1 steps by 3 TPUEmbeddings, 28 examples/s; '
     'evaluate or predict 1 step by TPUEmbedding; native kernels'),
    ([8], [NONE], [Figures(5, 4, 1.)],
     'evaluate or predict 5 steps by TPUEmbedding, 32 examples/s; native kernels'),
    ([8] * 4, [ONE] * 4, [NONE] * 4,
     'train 1, 1, 1, ... steps by 4 TPUEmbeddings; native kernels')])
def test_steps_in_functions_are_told_by_engine(monkeypatch, batch_sizes, trained, looked_up, said):
    monkeypatch.setattr(step_clock, 'totals', lambda: [
        Total(batch_size, 'native', *of_kinds)
        for batch_size, *of_kinds in zip(batch_sizes, trained, looked_up)])
    assert totals.totals() == said
