"""Checks that words have the ids that they had when a checkpoint was written.

A row belongs to an id. A word with another id would get the row of another word. Nothing else would
show it, since the shapes are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import tensorflow.compat.v1 as tf

from ..core.vocabulary import Vocabulary, Words
from ..errors import IncompatibleCheckpointError, Problem, shown
from .held import Held
from .options import CheckpointOptions


def check(held: Held, words: Iterable[Words], options: CheckpointOptions) -> None:
    """Warns of each feature whose words have other ids than in a checkpoint.

    A feature that only one of both has is no difference. The name of a file does not matter.

    Raises:
      IncompatibleCheckpointError: E641 for all such features, with `strict_vocabulary`.
    """
    stored = held.manifest.vocabularies if held.manifest is not None else {}
    code = 'E641' if options.strict_vocabulary else 'W631'
    found = list(_differences(code, held.where, stored, words))
    if found and options.strict_vocabulary:
        raise IncompatibleCheckpointError(*found)
    for problem in found:
        tf.logging.warning('%s', problem)


def recorded(words: Iterable[Words]) -> dict[str, Vocabulary]:
    """Returns what a checkpoint of a job records of its words, by feature.

    A file that cannot be read is left out; the look-up of its words reports it.
    """
    found = {}
    for one in words:
        try:
            found[one.feature] = one.vocabulary()
        except OSError as error:
            tf.logging.debug('%s: %s', one.source, error)
    return found


def _differences(code: str, where: str, stored: dict[str, Vocabulary], words: Iterable[Words]
                 ) -> Iterator[Problem]:
    for one in words:
        there = stored.get(one.feature)
        if there is None:
            continue
        try:
            here = one.as_in(there)
        except OSError as error:
            tf.logging.debug('%s: %s', one.source, error)
            continue
        if here != there:
            yield Problem(
                code, f'column "{shown(one.feature, 255)}"',
                f'its words must have the ids that they have in {where}, or they get the rows of '
                'others', f'{here}, by {one.source}, and there {there}',
                'Restore the vocabulary it was trained with, or train in another model_dir.')
