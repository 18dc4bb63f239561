import os

import pytest

from estimator_tpu_embedding.checkpoint.storage import write_atomically


def test_what_was_there_is_replaced_and_nothing_is_left_behind(tmp_path):
    path = tmp_path / 'f'
    path.write_bytes(b'old')
    write_atomically(str(path), b'new')
    assert path.read_bytes() == b'new'
    assert os.listdir(tmp_path) == ['f']


def test_a_link_in_the_place_of_the_staged_file_is_not_followed(tmp_path):
    victim = tmp_path / 'victim'
    victim.write_bytes(b'precious')
    (tmp_path / f'f.{os.getpid()}.tmp').symlink_to(victim)
    with pytest.raises(OSError):
        write_atomically(str(tmp_path / 'f'), b'new')
    assert victim.read_bytes() == b'precious'
