import hashlib

import pytest

from estimator_tpu_embedding.core.vocabulary_digests import Vocabulary, Words, digests_of_lines

TEXT = b'a\nbc\n\nd'  # Four lines, of which the last has no newline.
FIRST = {0: b'', 1: b'a\n', 2: b'a\nbc\n', 3: b'a\nbc\n\n', 4: b'a\nbc\n\nd\n', 9: b'a\nbc\n\nd\n'}


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize('size', [1, 2, 3, 99])
@pytest.mark.parametrize('counts', [{0}, {1, 3}, {2, 4}, {4, 9}, set(FIRST)])
def test_the_first_lines_have_their_digest_however_the_text_is_cut(size, counts):
    chunks = [TEXT[at:at + size] for at in range(0, len(TEXT), size)]
    assert digests_of_lines(chunks, counts) == {count: digest(FIRST[count]) for count in counts}


def words(content, size, oov=0, default=-1, reads=None, **kwargs):
    def chunks():
        if reads is not None:
            reads.append(content)
        yield content
    return Words('f', 'file x', chunks, size=size, num_oov_buckets=oov, default_value=default,
                 **kwargs)


def vocabulary(content, size, oov=0, default=-1):
    return Vocabulary(sha256=digest(content), size=size, num_oov_buckets=oov,
                      default_value=default)


@pytest.mark.parametrize('content, size, oov, default, is_alike', [
    (b'a\nb\n', 2, 0, -1, True), (b'b\na\n', 2, 0, -1, False), (b'a\nb\nc\n', 3, 0, -1, True),
    (b'a\nc\nb\n', 3, 0, -1, False), (b'a\n', 1, 0, -1, False), (b'a\nb\n', 2, 0, 0, False),
    (b'a\nb\n', 2, 1, -1, False), (b'a\nb\nc\n', 3, 1, -1, False)])
def test_i22_words_that_were_added_at_the_end_are_no_difference_others_are(
        content, size, oov, default, is_alike):
    before = vocabulary(b'a\nb\n', 2)
    assert (words(content, size, oov, default).as_in(before) == before) == is_alike


def test_i22_words_after_buckets_take_their_ids():
    before = vocabulary(b'a\nb\n', 2, oov=1)
    assert words(b'a\nb\nc\n', 3, oov=1).as_in(before) != before
