"""One grammar of names, on which all that read checkpoints agree."""

import pytest

from estimator_tpu_embedding.checkpoint import file_names


@pytest.mark.parametrize('name, step', [
    ('model.ckpt-7', 7), ('a-b-0', 0), ('/dir-1/x-9223372036854775807', 2**63 - 1), ('x--7', 7),
    ('model.ckpt-007', None), ('model.ckpt-00', None), ('model.ckpt-\u0663', None),
    ('model.ckpt-7\n', None), ('model.ckpt-12345678901234567890', None), ('model.ckpt7', None),
    ('7', None), ('', None), ('best', None)])
def test_a_name_with_a_step_is_what_is_built_of_its_base_and_step(name, step):
    assert file_names.step_of(name) == step
    if step is not None:
        assert file_names.name_of(file_names.base_of(name), step) == name


@pytest.mark.parametrize('file', [
    'checkpoint', 'graph.pbtxt', '.index', '.tables.json', 'model.ckpt-7', 'model.ckpt-7.partial',
    'm.data-1-of-2', 'm.data-00000-of-0000\u0661', 'm.index.tmp', '.data-00000-of-00001'])
def test_what_has_another_name_is_no_file_of_a_checkpoint(file):
    assert file_names.parse(file) is None
