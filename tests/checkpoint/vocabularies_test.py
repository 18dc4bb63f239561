"""Rows are those of ids: a job hears of words that have other ids than in its checkpoint."""

import hashlib

import pytest
import tensorflow.compat.v1 as tf
from absl import logging
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.errors import IncompatibleCheckpointError


@pytest.fixture
def path(tmp_path):
    file = tmp_path / 'words.txt'
    file.write_text('a\nb\nc\n')
    return file


@pytest.fixture
def warnings(monkeypatch):
    found = []
    log = logging.warning
    monkeypatch.setattr(logging, 'warning', lambda text, *values: (
        found.append(text % values) if values and str(values[0]).startswith('W631')
        else log(text, *values)))
    return found


def job(tmp_path, path, strict=False, use_tpu=True, hosts=1, **kwargs):
    """A TPUEstimator over the words of a file."""
    columns = [ete.embedding_column(tf.feature_column.categorical_column_with_vocabulary_file(
        'f', str(path), **kwargs), 2)]

    def optimizer():
        return tf.train.GradientDescentOptimizer(0.1)

    return jobs.estimator(
        jobs.linear_model_fn(columns, None if use_tpu else optimizer), columns,
        jobs.run_config(tmp_path / 'model', hosts,
                        checkpoint=CheckpointOptions(strict_vocabulary=strict)),
        batch_size=4, use_tpu=use_tpu)


def input_fn(params):
    words = tf.data.Dataset.from_tensors(({'f': ['a', 'b', 'c', 'a']}, [0.] * 4))
    return words.repeat().unbatch().batch(params['batch_size'], drop_remainder=True)


def state_of(directory):
    """What is on disk, but for the lock."""
    files = [path for path in sorted(directory.rglob('*'))
             if path.is_file() and path.name != '.ete-lock']
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def reordered(path):
    path.write_text('b\na\nc\n')  # As many words, in another order.


def test_i22_a_vocabulary_file_that_changed_is_a_warning_and_strict_an_error(
        tmp_path, path, warnings):
    job(tmp_path, path).train(input_fn, max_steps=2)
    reordered(path)
    before = state_of(tmp_path / 'model')
    with pytest.raises(IncompatibleCheckpointError) as caught:
        job(tmp_path, path, strict=True).train(input_fn, max_steps=4)
    there, here = (hashlib.sha256(words).hexdigest()[:12]
                   for words in (b'a\nb\nc\n', b'b\na\nc\n'))
    text = str(caught.value)
    assert text.startswith(
        'E641 column "f": its words must have the ids that they have in checkpoint model.ckpt-2, '
        f'or they get the rows of others; got 3 words (SHA-256 {here}), default_value -1, by file '
        f'{path}, and there 3 words (SHA-256 {there}), default_value -1.')
    assert state_of(tmp_path / 'model') == before and not warnings

    job(tmp_path, path).train(input_fn, max_steps=4)
    assert warnings == [text.replace('E641', 'W631')]
    job(tmp_path, path, strict=True).train(input_fn, max_steps=6)  # That is what it now holds.
    assert len(warnings) == 1


def test_i22_evaluation_prediction_and_export_hear_of_it_too(tmp_path, path, warnings):
    job(tmp_path, path).train(input_fn, max_steps=1)
    reordered(path)
    estimator, strict = (job(tmp_path, path, strict=strict) for strict in (False, True))

    def predict(params):
        return tf.data.Dataset.from_tensors({'f': ['a']}).unbatch().batch(
            params['batch_size'])

    def receiver():
        features = {'f': tf.placeholder(tf.string, [None])}
        return _legacy.load().export.ServingInputReceiver(features, features)

    def each(of):
        return [lambda: of.evaluate(input_fn, steps=1), lambda: list(of.predict(predict)),
                lambda: of.export_saved_model(str(tmp_path / 'export'), receiver),
                lambda: of.train(input_fn, steps=1)]

    for work in each(strict):
        with pytest.raises(IncompatibleCheckpointError, match='E641 column "f"'):
            work()
    for number, work in enumerate(each(estimator), start=1):
        work()
        assert len(warnings) == number


def test_i22_the_same_words_elsewhere_and_more_words_behind_them_are_no_difference(
        tmp_path, path, warnings):
    job(tmp_path, path).train(input_fn, max_steps=1)
    moved = tmp_path / 'elsewhere.txt'
    moved.write_text('a\nb\nc')  # Without the last newline, too.
    path.unlink()
    job(tmp_path, moved, strict=True, hosts=2).train(input_fn, max_steps=2)
    moved.write_text('a\nb\nc\nd\n')
    job(tmp_path, moved, strict=True, vocabulary_size=3).train(input_fn, max_steps=3)
    assert not warnings
