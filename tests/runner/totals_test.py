"""The line of all runs says what was trained, where it lies, and nothing that is not so."""

import pytest

from estimator_tpu_embedding.hosts import update_counts
from estimator_tpu_embedding.runner import progress, totals
from estimator_tpu_embedding.runner.progress import RunReport


@pytest.fixture(autouse=True)
def nothing_yet(monkeypatch):
    for module, name in ((progress, '_reports'), (update_counts, '_counters'),
                         (totals, '_own_loops')):
        monkeypatch.setattr(module, name, [])


def report(steps, *, seconds=2., batch_size=8, verb='train', **kwargs):
    progress._reports.append(RunReport(verb, batch_size, steps=steps, seconds=seconds, **kwargs))


class Counter:
    """The counter of an engine."""

    def __init__(self, number):
        self._number = number

    def numpy(self):
        return self._number


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


@pytest.mark.parametrize('numbers, said', [
    ([0], 'nothing was trained by an Estimator or a TPUEmbedding'),
    ([0, 1], 'train 1 step by TPUEmbedding'),
    ([10, 0, 4], 'train 10, 4 steps by 2 TPUEmbeddings'),
    ([1, 2, 3, 4], 'train 1, 2, 3, ... steps by 4 TPUEmbeddings')])
def test_steps_in_functions_are_told_by_engine(numbers, said):
    for number in numbers:
        update_counts.count_by(Counter(number))
    assert totals.totals() == said
