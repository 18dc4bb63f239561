import os

import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.columns.embedding_columns import words_of


def by_file(path, **kwargs):
    return ete.embedding_column(
        tf.feature_column.categorical_column_with_vocabulary_file('f', str(path), **kwargs), 2)


@pytest.fixture
def path(tmp_path):
    (tmp_path / 'words').write_text('a\nb\nc\n')
    return tmp_path / 'words'


def vocabulary_of(column):
    one, = words_of([column])
    return one.vocabulary()


def test_size_buckets_and_default_are_told(path):
    found = vocabulary_of(by_file(path, vocabulary_size=2, num_oov_buckets=2))
    assert (found.size, found.num_oov_buckets, found.default_value) == (2, 2, -1)


def test_columns_without_words_have_none_and_sequences_and_weights_have_theirs(path):
    weighted = tf.feature_column.weighted_categorical_column(
        tf.feature_column.categorical_column_with_vocabulary_file('g', str(path)), 'w')
    sequence = tf.feature_column.sequence_categorical_column_with_vocabulary_list('h', ['a'])
    columns = [jobs.embedding('f', 10), ete.embedding_column(weighted, 2),
               ete.embedding_column(sequence, 2, max_sequence_length=3)]
    assert [one.feature for one in words_of(columns)] == ['g', 'h']
    assert words_of(columns)[0].source == f'file {path}'


def test_a_file_that_cannot_be_read_is_an_os_error_and_a_pipe_blocks_nobody(path, tmp_path):
    column = by_file(path)
    path.unlink()
    with pytest.raises(OSError):
        vocabulary_of(column)
    os.mkfifo(path)
    with pytest.raises(OSError, match='pipe'):
        vocabulary_of(column)
