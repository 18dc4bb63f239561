"""C17: whatever lies where a file is expected, it is not waited for, followed or written to."""

import os
import pathlib
import signal
import socket
import stat

import pytest
from harness import sweeps

from estimator_tpu_embedding.checkpoint.model_dir import claimed, settle
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.checkpoint.warm_start import checkpoint_of
from estimator_tpu_embedding.cli.main import main
from estimator_tpu_embedding.errors import (
    CheckpointError,
    CorruptCheckpointError,
    UnreadableConfigError,
)
from estimator_tpu_embedding.proto import reading

KINDS = ('pipe', 'socket', 'folder', 'device', 'link', 'dangling link')
NO_LINKS = KINDS[:4]
FILES = ('.tables.json', '.index', '.data-00000-of-00002', '.meta')
OF_TENSORFLOW = '0123456789abcdef' * 2


def put(path, kind):
    """Puts something that is no regular file at a path, in the place of what is there."""
    path.unlink(missing_ok=True)
    if kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'socket':
        with socket.socket(socket.AF_UNIX) as one:
            folder = os.open(path.parent, os.O_RDONLY)  # Addresses are short; paths may be long.
            one.bind(f'/proc/self/fd/{folder}/{path.name}')
            os.close(folder)
    elif kind == 'folder':
        path.mkdir()
    elif kind == 'device':
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
        except OSError:
            pytest.skip('only the administrator makes devices')
    else:
        target = path.parent.parent / ('victim' if kind == 'link' else 'nothing')
        if kind == 'link':
            target.write_bytes(b'precious')
        path.symlink_to(target)
    return os.lstat(path).st_mode


@pytest.fixture(autouse=True)
def no_wait():
    """Whatever waits is interrupted in the end, generously late."""
    def interrupt(*_):
        raise TimeoutError('it still waits')

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def mine(memory_folder, tiny):
    """A directory with the checkpoints of steps 1 and 2."""
    path = pathlib.Path(memory_folder, 'mine')
    path.mkdir()
    sweeps.live_in(path, tiny, [1, 2])
    yield path
    victim = path.parent / 'victim'
    assert not victim.exists() or victim.read_bytes() == b'precious'
    assert not (path.parent / 'nothing').exists()


@pytest.mark.parametrize('kind', KINDS)
def test_c17_in_the_place_of_the_lock_nothing_is_read_or_written(mine, kind):
    mode = put(mine / '.ete-lock', kind)
    with pytest.raises(CheckpointError, match='E621 .*[.]ete-lock .*must be a regular file'):
        with claimed(str(mine)):
            pass
    assert os.lstat(mine / '.ete-lock').st_mode == mode


@pytest.mark.parametrize('kind', KINDS)
def test_c17_in_the_place_of_the_pointer_it_is_replaced(mine, tiny, kind, caplog):
    put(mine / 'checkpoint', kind)
    found = recover(str(mine))
    assert found.step == 2 and not found.skipped
    with claimed(str(mine)):
        assert settle(str(mine), CheckpointOptions()).prefix == found.prefix
        sweeps.live_in(mine, tiny, [3])
    assert (mine / 'checkpoint').read_text().startswith('model_checkpoint_path: "model.ckpt-3"\n')
    assert not (mine / 'checkpoint').is_symlink()
    assert (mine / 'checkpoint.unreadable-1').exists() == (kind in NO_LINKS) == (
        'W618 model_dir' in caplog.text)


@pytest.mark.parametrize('kind', KINDS)
def test_c17_where_no_checkpoint_is_tensorflow_is_not_let_read_the_pointer(tmp_path, kind):
    model_dir = tmp_path / 'model_dir'
    model_dir.mkdir()
    put(model_dir / 'checkpoint', kind)
    if kind in NO_LINKS:
        with pytest.raises(CorruptCheckpointError, match='E616 model_dir .*; got a.*Remove it'):
            recover(str(model_dir))
    else:
        assert recover(str(model_dir)) is None
    with claimed(str(model_dir)):
        assert settle(str(model_dir), CheckpointOptions()) is None
    assert not os.path.lexists(model_dir / 'checkpoint')


@pytest.mark.parametrize('content', [b'', b'junk', b'\n' * 2**20])
def test_c14_a_pointer_that_names_nothing_is_kept_under_another_name(tmp_path, content):
    (tmp_path / 'checkpoint').write_bytes(content)
    assert recover(str(tmp_path)) is None
    with claimed(str(tmp_path)):
        assert settle(str(tmp_path), CheckpointOptions()) is None
    assert (tmp_path / 'checkpoint.unreadable-1').read_bytes() == content


def test_c14_a_pointer_that_is_too_large_is_not_read_by_tensorflow(tmp_path):
    (tmp_path / 'checkpoint').write_bytes(b'\n' * (2**20 + 1))
    with pytest.raises(CorruptCheckpointError, match='E616 .*1,048,577 bytes'):
        recover(str(tmp_path))


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('suffix', FILES)
def test_c17_a_checkpoint_with_it_is_not_restored(mine, capsys, kind, suffix):
    put(mine / f'model.ckpt-2{suffix}', kind)
    found = recover(str(mine))
    assert found.step == 1 and f'model.ckpt-2{suffix}' in str(found.skipped[0])
    for command in ('ls', 'verify'):
        assert main(['checkpoint', command, str(mine)]) == 1
        assert 'model.ckpt-2' in capsys.readouterr().out
    assert main(['checkpoint', 'show', str(mine)]) == 0
    if suffix == '.meta':
        with pytest.raises(UnreadableConfigError, match='E480'):
            reading.read_file(str(mine / 'model.ckpt-2.meta'), follow=False)


@pytest.mark.parametrize('kind', ['link', 'pipe'])
def test_c17_what_a_stage_contains_is_removed_with_it(mine, kind):
    (mine / '.ete-stage-3-x' / 'model.ckpt-3_temp').mkdir(parents=True)
    put(mine / '.ete-stage-3-x' / 'model.ckpt-3.index', kind)
    put(mine / '.ete-stage-3-x' / 'model.ckpt-3_temp' / 'part', kind)
    victim = mine / 'victim'
    with claimed(str(mine)):
        assert not (mine / '.ete-stage-3-x').exists()
    assert not victim.exists() or victim.read_bytes() == b'precious'


NAMES = [f'graph.pbtxt.tmp{OF_TENSORFLOW}', f'checkpoint.tmp{OF_TENSORFLOW}', 'checkpoint.tmp',
         f'checkpoint_input.tmp{OF_TENSORFLOW}', 'checkpoint.tmp-01234567']


@pytest.mark.parametrize('name', NAMES)
def test_c04_what_a_full_disk_left_is_removed_by_the_next_job(mine, name):
    (mine / name).write_bytes(b'half of it')
    (mine / 'graph.pbtxt.tmp').write_bytes(b'of the user')
    with claimed(str(mine)):
        assert not (mine / name).exists()
    assert (mine / 'graph.pbtxt.tmp').exists() and recover(str(mine)).step == 2


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('kind', ['link', 'pipe'])
def test_c17_and_is_left_and_told_where_it_is_no_file(mine, tiny, caplog, name, kind):
    mode = put(mine / name, kind)
    with claimed(str(mine)):
        sweeps.live_in(mine, tiny, [3])
    assert os.lstat(mine / name).st_mode == mode
    assert f'{name} is left where it is' in caplog.text
    assert (mine / 'checkpoint').read_text().startswith('model_checkpoint_path: "model.ckpt-3"\n')
    assert [path.name for path in mine.glob('*.tmp*')] == [name]


@pytest.mark.parametrize('kind', NO_LINKS)
def test_c17_a_warm_start_from_it_is_refused(tmp_path, kind):
    (tmp_path / 'x').mkdir()
    put(tmp_path / 'x' / 'model.ckpt-7', kind)
    if kind == 'folder':
        assert checkpoint_of(str(tmp_path / 'x' / 'model.ckpt-7'), CheckpointOptions()) is None
        return
    with pytest.raises(CorruptCheckpointError, match='E617 warm start from .*model.ckpt-7'):
        checkpoint_of(str(tmp_path / 'x' / 'model.ckpt-7'), CheckpointOptions())
    put(tmp_path / 'x' / 'model.ckpt-8.index', kind)
    with pytest.raises(CorruptCheckpointError, match='E613 .*model.ckpt-8.index'):
        checkpoint_of(str(tmp_path / 'x' / 'model.ckpt-8'), CheckpointOptions())
