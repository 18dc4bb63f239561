"""Digests of vocabularies, which tell whether two runs give words the same ids."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Collection, Iterable

from ..errors import counted
from .specs import is_count


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The facts that decide which id a word has.

    Attributes:
      sha256: hexadecimal digest of the words in the order of their ids, each followed by a
        newline. For a file that is not text it is the digest of the whole file.
      size: number of words with an id of their own.
      num_oov_buckets: number of further ids, which all other words share.
      default_value: the id of all other words if there are no such buckets.
    """

    sha256: str
    size: int
    num_oov_buckets: int
    default_value: int

    def __str__(self) -> str:
        rest = (f'{counted(self.num_oov_buckets, "OOV bucket")}' if self.num_oov_buckets
                else f'default_value {self.default_value}')
        return f'{counted(self.size, "word")} (SHA-256 {self.sha256[:12]}), {rest}'

    def is_possible(self) -> bool:
        """Whether a column may have these numbers."""
        return (is_count(self.size, 0, 2**63 - 1) and is_count(self.num_oov_buckets, 0, 2**63 - 1)
                and is_count(self.default_value, -2**63, 2**63 - 1))


class Words:
    """The words of one feature. They are read once, when a digest is asked for.

    `source` is the name of the words in messages, for example `file /data/words.txt`.
    """

    def __init__(self, feature: str, source: str, chunks: Callable[[], Iterable[bytes]], *,
                 size: int, num_oov_buckets: int, default_value: int, is_text: bool = True):
        """Reads nothing yet.

        Args:
          chunks: reads all words, one per line; raises OSError if it cannot.
          size: see `Vocabulary`; further lines of `chunks` are not words.
          is_text: whether `chunks` are lines; otherwise only TensorFlow can read them.
        """
        self.feature, self.source = feature, source
        self._chunks, self._is_text = chunks, is_text
        self._size, self._oov, self._default = size, num_oov_buckets, default_value
        self._digests: dict[int, str] = {}

    def vocabulary(self) -> Vocabulary:
        """Returns the vocabulary of these words; raises OSError if they cannot be read."""
        return self._of_first(self._size)

    def as_in(self, stored: Vocabulary) -> Vocabulary:
        """Returns the vocabulary of those words that an earlier vocabulary could have, too.

        If neither has buckets, words may have been added at the end: the earlier ids still mean
        the same. Then only as many words count as the earlier vocabulary has.
        """
        has_more = self._is_text and stored.size < self._size
        is_added_to = has_more and not stored.num_oov_buckets and not self._oov
        return self._of_first(stored.size if is_added_to else self._size)

    def _of_first(self, count: int) -> Vocabulary:
        if count not in self._digests:
            wanted = {count, self._size}
            self._digests = (digests_of_lines(self._chunks(), wanted) if self._is_text
                             else dict.fromkeys(wanted, _digest(self._chunks())))
        return Vocabulary(sha256=self._digests[count], size=count, num_oov_buckets=self._oov,
                          default_value=self._default)


def digests_of_lines(chunks: Iterable[bytes], counts: Collection[int]) -> dict[int, str]:
    """Returns the SHA-256 of the first lines of a text, by their number, after one pass.

    The last line may lack its newline. If the text has fewer lines, all of them count.

    >>> digests_of_lines([b'a\\nb', b'\\nc'], {2}) == digests_of_lines([b'a\\nb'], {2})
    True
    """
    sha, lines, is_ended = hashlib.sha256(), 0, True
    wanted, found = sorted(counts), dict[int, str]()
    for chunk in chunks:
        begin = 0
        while wanted and lines + chunk.count(b'\n', begin) >= wanted[0]:
            end = begin
            for _ in range(wanted[0] - lines):
                end = chunk.index(b'\n', end) + 1
            sha.update(chunk[begin:end])
            begin, lines = end, wanted[0]
            found[wanted.pop(0)] = sha.hexdigest()
        if not wanted:
            return found
        sha.update(chunk[begin:])
        lines += chunk.count(b'\n', begin)
        is_ended = chunk.endswith(b'\n') if chunk else is_ended
    if not is_ended:
        sha.update(b'\n')
    return {**found, **dict.fromkeys(wanted, sha.hexdigest())}


def _digest(chunks: Iterable[bytes]) -> str:
    sha = hashlib.sha256()
    for chunk in chunks:
        sha.update(chunk)
    return sha.hexdigest()
