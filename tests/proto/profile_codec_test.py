"""The file of a profile: what is written is read, and what strangers write is refused."""

import random

import pytest
from harness.profiles import profile_of, subject
from harness.wire import field, varint

from estimator_tpu_embedding.proto import profile_codec
from estimator_tpu_embedding.proto.table_profile_pb2 import TableProfile as Message
from estimator_tpu_embedding.proto.wire import Malformed

ABOUT = subject(6_000, table='a/b', hosts=2, cores=2, batch_size=8, dimension=3, strategy='mod',
                features=(('f', 0), ('g', 4)))
PROFILE = profile_of(ABOUT, [range(5_000), [1, 1, 5_999], []])
SMALL = profile_of(subject(), [[0, 0, 3], [9]])
CONTENT = profile_codec.encode(SMALL, 'test 1')


def test_a_profile_is_read_as_it_was_written():
    assert PROFILE.undercount and not SMALL.undercount
    for profile in (PROFILE, SMALL):
        assert profile_codec.decode(profile_codec.encode(profile, 'test 1')) == profile


def test_a_profile_has_a_bounded_size():
    ids = [number * 400_000 for number in range(5_000)]
    big = profile_of(subject(2**31 - 1, hosts=64), [ids, ids])
    assert len(big.heavy) <= 4096
    assert len(profile_codec.encode(big, '')) < 60_000 < profile_codec.MAX_BYTES


def changed(change):
    message = Message.FromString(CONTENT)
    change(message)
    return message.SerializeToString()


@pytest.mark.parametrize('content, said', [
    (b'', 'not the profile'), (b'\x08\x01', 'not the profile'), (b'garbage', ''),
    (CONTENT[:-1], ''), (b'\0' * (profile_codec.MAX_BYTES + 1), 'more than'),
    (changed(lambda message: setattr(message, 'format', 2)), 'reads format 1'),
    (changed(lambda message: message.heavy_counts.pop()), 'a count each'),
    (changed(lambda message: message.heavy_ids.reverse()), 'ascending'),
    (changed(lambda message: setattr(message, 'batch_size', 2**64 - 1)), 'out of range'),
    (changed(lambda message: setattr(message, 'table', '\x1b]52;c;')), 'E403'),
    (changed(lambda message: message.div.ids.append(1)), 'length'),
    (CONTENT + field(14, b'') * 100_000, 'features'),
    (CONTENT + field(3, b'\xff'), 'UTF-8'),
    (CONTENT + varint(99 << 3 | 3) * 1_000, 'wire type')])  # groups in groups
def test_what_is_no_profile_is_refused_with_a_reason(content, said):
    with pytest.raises(Malformed) as caught:
        profile_codec.decode(content)
    assert said in str(caught.value) and len(str(caught.value)) < 400


def test_mutated_profiles_are_read_or_refused():
    chance = random.Random(1)
    outcomes = set()
    for _ in range(3_000):
        content = bytearray(CONTENT)
        for _ in range(chance.randint(1, 3)):
            # The registers, 2 KiB in which nearly any byte is as good as another, are spared.
            at = chance.choice([chance.randrange(len(CONTENT) - 2_100), len(CONTENT) - 10])
            content[at:at + chance.choice([0, 1, 1, 4])] = chance.randbytes(chance.randint(0, 2))
        try:
            outcomes.add(type(profile_codec.decode(content)))
        except Malformed:
            outcomes.add(Malformed)
    assert outcomes == {Malformed, type(SMALL)}
