"""Lists the words that columns map to ids, so that checkpoints can record and compare them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.vocabulary_digests import Words
from ..errors import shown
from ..proto import files
from .embedding_columns import innermost

_CHUNK = 2**20


def words_of(columns: Sequence[Any]) -> list[Words]:
    """Returns the words of all columns that have a vocabulary, by feature; reads no file yet."""
    found = {}
    for column in columns:
        categorical = innermost(column)
        path = getattr(categorical, 'vocabulary_file', None)
        words = getattr(categorical, 'vocabulary_list', None)
        if path is not None and not tf.is_tensor(path):
            path = tf.compat.as_text(tf.compat.path_to_str(path))
            form = getattr(categorical, 'file_format', None)
            found[categorical.key] = Words(
                categorical.key, f'file {shown(path, 255)}',
                functools.partial(_of_file, path), size=categorical.vocabulary_size,
                is_text=form in (None, 'text'), **_rest(categorical))
        elif words is not None:
            found[categorical.key] = Words(
                categorical.key, 'vocabulary_list', functools.partial(_of_list, words),
                size=len(words), **_rest(categorical))
    return [found[feature] for feature in sorted(found)]


def _rest(categorical: Any) -> dict[str, Any]:
    default = categorical.default_value
    return {'num_oov_buckets': int(categorical.num_oov_buckets or 0),
            'default_value': -1 if default is None else int(default)}


def _of_file(path: str) -> Iterator[bytes]:
    """Yields a file in pieces, from any place that TensorFlow reads."""
    try:
        with (tf.io.gfile.GFile(path, 'rb') if '://' in path
              else files.open_regular(path, follow=True)) as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except (tf.errors.OpError, ValueError) as error:
        raise OSError(str(error)) from error


def _of_list(words: Iterable[Any]) -> Iterator[bytes]:
    for word in words:
        yield (word if isinstance(word, bytes) else str(word).encode()) + b'\n'
