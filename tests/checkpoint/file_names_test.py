"""One grammar of names, on which all that read checkpoints agree."""

import pathlib

import pytest
from harness.checkpoints import describe, writer

from estimator_tpu_embedding.checkpoint import file_names, recover
from estimator_tpu_embedding.checkpoint.candidates import candidates
from estimator_tpu_embedding.checkpoint.compare import compare
from estimator_tpu_embedding.checkpoint.layout import Held, Needed
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.scan import scan
from estimator_tpu_embedding.cli import main
from estimator_tpu_embedding.errors import CorruptCheckpointError


def save(directory, name, step=7):
    """Writes a checkpoint with a manifest under any name; returns its prefix."""
    prefix = str(directory / name)
    writer()(prefix)
    pathlib.Path(file_names.manifest_path(prefix)).write_bytes(
        describe(step)(scan(prefix).files).to_json())
    return prefix


@pytest.mark.parametrize('name, step', [
    ('model.ckpt-7', 7), ('a-b-0', 0), ('/dir-1/x-9223372036854775807', 2**63 - 1), ('x--7', 7),
    ('model.ckpt-007', None), ('model.ckpt-00', None), ('model.ckpt-\u0663', None),
    ('model.ckpt-7\n', None), ('model.ckpt-12345678901234567890', None), ('model.ckpt7', None),
    ('7', None), ('', None), ('best', None)])
def test_a_name_with_a_step_is_what_is_built_of_its_base_and_step(name, step):
    assert file_names.step_of(name) == step
    if step is not None:
        assert file_names.name_of(file_names.base_of(name), step) == name


def test_what_is_built_is_parsed_as_it_was_meant():
    for checkpoint in ('model.ckpt-7', 'a.index', 'two\nlines', '/some/dir/best'):
        built = {file_names.INDEX: [file_names.index_of(checkpoint)],
                 file_names.GRAPH: [file_names.graph_of(checkpoint)],
                 file_names.MANIFEST: [file_names.manifest_path(checkpoint)],
                 file_names.PARTIAL: [file_names.partial_of(checkpoint)],
                 file_names.DATA: file_names.data_of(checkpoint, 3)}
        for kind, files in built.items():
            for file in files:
                assert file_names.parse(file) == (checkpoint, kind)
                assert file.startswith(file_names.beginning_of_files(checkpoint))
    assert file_names.is_stage(file_names.new_stage(7))
    assert file_names.replaced_by(file_names.replacement_of('model.ckpt-7')) == 'model.ckpt-7'
    assert file_names.is_unfinished(file_names.new_staged_pointer())


@pytest.mark.parametrize('file', [
    'checkpoint', 'graph.pbtxt', '.index', '.tables.json', 'model.ckpt-7', 'model.ckpt-7.partial',
    'm.data-1-of-2', 'm.data-00000-of-0000\u0661', 'm.index.tmp', '.data-00000-of-00001'])
def test_what_has_another_name_is_no_file_of_a_checkpoint(file):
    assert file_names.parse(file) is None


def test_a_step_with_leading_zeros_is_none_for_all(tmp_path, capsys):
    """Its manifest says step 7, and the name says none: it is that of another checkpoint."""
    prefix = save(tmp_path, 'model.ckpt-007')
    assert candidates(str(tmp_path)) == [] and recover.recover(str(tmp_path)) is None
    with pytest.raises(CorruptCheckpointError, match='E614 checkpoint model.ckpt-007: .*step 7'):
        recover.verify(prefix)
    held = Held(prefix, {'t': (7, 2), 't/Adagrad': (7, 2)}, read_manifest(prefix))
    with pytest.raises(CorruptCheckpointError, match='E614 checkpoint model.ckpt-007: .*step 7'):
        compare(held, Needed({}, {}), CheckpointOptions())
    for command, path in (('ls', tmp_path), ('verify', prefix), ('show', prefix)):
        assert main.main(['checkpoint', command, str(path)]) == 1
        assert 'E614 checkpoint model.ckpt-007: ' in capsys.readouterr().out
    assert main.main(['checkpoint', 'show', str(tmp_path)]) == 2
    assert 'it must hold checkpoints of a job; got others' in capsys.readouterr().err


def test_a_step_with_leading_zeros_does_not_hide_the_checkpoint_of_that_step(tmp_path):
    save(tmp_path, 'model.ckpt-007')
    save(tmp_path, 'model.ckpt-7')
    (tmp_path / 'checkpoint').write_text('model_checkpoint_path: "model.ckpt-007"\n')
    assert candidates(str(tmp_path)) == ['model.ckpt-7']
    assert recover.recover(str(tmp_path)).step == 7
