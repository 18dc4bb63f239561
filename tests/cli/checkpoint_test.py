import dataclasses
import hashlib
import pathlib

import numpy as np
import pytest
from harness import forged
from harness.forged import entry
from harness.forged_job import IDS, VALUES, WIDTH, save
from harness.processes import run_etpe

from estimator_tpu_embedding.checkpoint.file_names import MANIFEST
from estimator_tpu_embedding.checkpoint.manifest import read_manifest
from estimator_tpu_embedding.core.vocabulary_digests import Vocabulary


def flip(path):
    """Damages a file."""
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)


@pytest.fixture
def model_dir(tmp_path):
    """Two good checkpoints; a save that did not end; one of which a file is lost; and a pointer."""
    directory = tmp_path / 'model_dir'
    save(directory, 3)
    legacy = save(directory, 20)
    pathlib.Path(legacy + MANIFEST).unlink()
    save(directory, 100)
    (directory / 'model.ckpt-100.data-00000-of-00001').unlink()
    (directory / '.ete-stage-120-x').mkdir()
    (directory / 'checkpoint').write_text('model_checkpoint_path: "model.ckpt-20"\n')
    return directory


def test_ls_says_what_is_committed_legacy_and_incomplete(etpe, model_dir):
    report = etpe.json('checkpoint', 'ls', model_dir, status=1)
    assert report['command'] == 'checkpoint ls'
    assert [(one['name'], one['step'], one['state'], one['tables'], one['created'])
            for one in report['checkpoints']] == [
        ('model.ckpt-3', 3, 'committed', 1, 1e9), ('model.ckpt-20', 20, 'legacy', None, None),
        ('model.ckpt-100', 100, 'incomplete', 1, 1e9)]
    assert report['pointer'] == 'model.ckpt-20' and report['stages'] == ['.ete-stage-120-x']
    finding, = report['findings']
    assert finding['code'] == 'E618' and (
        'its file model.ckpt-100.data-00000-of-00001 must be as the manifest says; got listed in '
        'manifest, not found.  Use an older' in finding['message'])
    text = etpe('checkpoint', 'ls', model_dir, status=1)
    assert '1  2001-09-09 01:46:40 UTC\n' in text and '1 folder of saves' in text


def test_ls_knows_a_pointer_with_the_path_of_the_directory(etpe, tmp_path):
    save(tmp_path, 5)
    pointer = tmp_path / 'checkpoint'
    pointer.write_text(f'model_checkpoint_path: "{tmp_path}/model.ckpt-5"\n')
    assert etpe.json('checkpoint', 'ls', tmp_path)['pointer'] == 'model.ckpt-5'
    for other, text in (
            ('/elsewhere/model.ckpt-5', 'model.ckpt-5", which leads outside of it.  If that is'),
            ('../model.ckpt-5', 'which leads outside of it'), ('model.ckpt-6', '"model.ckpt-6".'),
            ('', 'nothing that can be read')):
        pointer.write_text(f'model_checkpoint_path: "{other}"\n')
        finding, = etpe.json('checkpoint', 'ls', tmp_path, status=1)['findings']
        assert finding['code'] == ('E619' if '/' in other else 'E645')
        assert 'must name a checkpoint in it' in finding['message'] and text in finding['message']


@pytest.mark.parametrize('command', ['show', 'verify', 'ls'])
def test_a_path_where_nothing_is_is_an_error_in_one_line_with_a_remedy(etpe, tmp_path, command):
    complaint = etpe('checkpoint', command, tmp_path / 'no' / 'model.ckpt-1', status=2)
    assert complaint.startswith(f'etpe checkpoint {command}: E645 ') and complaint.count('\n') == 1
    assert 'Name the directory' in complaint
    if command != 'ls':
        assert 'E645' in etpe('checkpoint', command, tmp_path, status=2)
        assert 'E645 "": ' in etpe('checkpoint', command, '', status=2)
        for name in (f'{save(tmp_path, 6)}.', tmp_path / 'model.ckpt-7'):
            assert 'none of that name.  There: model.ckpt-6.\n' in etpe(
                'checkpoint', command, name, status=2)


def test_show_takes_what_a_job_would_restore_and_says_what_it_skips(etpe, model_dir):
    report = etpe.json('checkpoint', 'show', model_dir)
    assert report['where'].endswith('model.ckpt-20')
    assert [one['code'] for one in report['skipped']] == ['E618']
    (model_dir / 'model.ckpt-20.index').write_bytes(b'')
    assert 'model.ckpt-3 is what a job would restore, not the newest that is there: ' in etpe(
        'checkpoint', 'show', model_dir)
    assert 'E613' in etpe('checkpoint', 'show', model_dir / 'model.ckpt-20', status=2)
    flip(model_dir / 'model.ckpt-3.data-00000-of-00001')
    assert etpe('checkpoint', 'show', model_dir, status=2).startswith(
        'etpe checkpoint show: E612 ')
    (model_dir / 'checkpoint').write_text('model_checkpoint_path: "/a/model.ckpt-1"\n')
    assert 'E619' in etpe('checkpoint', 'show', model_dir, status=2)


def test_show_tells_tables_variables_and_the_digest_to_pin(etpe, tmp_path):
    prefix = save(tmp_path, strategy='mod', hosts=3)
    digest = hashlib.sha256(pathlib.Path(prefix + MANIFEST).read_bytes()).hexdigest()
    report = etpe.json('checkpoint', 'show', prefix)
    assert report['manifest_sha256'] == digest and report['plan_digest'] == 'abc'
    assert report['tables'] == [{
        'name': 'scope/t', 'rows': IDS, 'width': WIDTH, 'strategy': 'mod', 'hosts': 3,
        'slots': ['Adagrad'], 'bytes': IDS * WIDTH * 4 * 2}]
    assert report['variables'] == [
        {'name': 'dense', 'type': 'float64', 'shape': [2], 'bytes': 16},
        {'name': 'global_step', 'type': 'int64', 'shape': [], 'bytes': 8}]
    text = etpe('checkpoint', 'show', f'{prefix}.index')
    assert f'SHA-256 of its manifest: {digest}\n' in text
    assert 'step 7, 2001-09-09 01:46:40 UTC, by test 1, plan abc\n' in text


def test_show_sample_names_the_ids_that_are_absent(etpe, tmp_path):
    prefix = save(tmp_path)
    report = etpe.json('checkpoint', 'show', prefix, '--sample', 40, 2, 11)
    assert report['absent'] == [{'table': 'scope/t', 'ids': [40, 11], 'rows': IDS}]
    assert [one['id'] for one in report['samples']] == [2]
    assert 'scope/t has ids up to 10, and none of 40\n' in etpe(
        'checkpoint', 'show', prefix, '--sample', 40)
    for id in ('-1', 'x'):
        assert 'an id is a number >= 0' in etpe(
            'checkpoint', 'show', prefix, '--sample', 1, id, status=2)


@pytest.mark.parametrize('order, row', [('div', 10), ('mod:3', 7)])
def test_show_gives_the_row_of_an_id_and_with_diff_assumes_an_order_without_a_manifest(
        etpe, tmp_path, order, row):
    strategy, _, hosts = order.partition(':')  # mod:3: id 10 is row 3 of host 1, of 4.
    prefix = save(tmp_path / 'a', strategy=strategy, hosts=int(hosts or 3))
    read = ('checkpoint', 'show', prefix, '--sample', 10)
    sample = {'table': 'scope/t', 'id': 10, 'row': row, 'values': VALUES[10].tolist()}
    assert etpe.json(*read)['samples'][0].items() >= sample.items()
    pathlib.Path(prefix + MANIFEST).unlink()
    assert 'no manifest: --sample needs one, or --assume\n' in etpe(*read)
    report = etpe.json(*read, '--assume', order)
    assert [one['name'] for one in report['tables']] == ['scope/t', 'scope/t/Adagrad']
    assert report['samples'][0] == sample
    report = etpe.json('checkpoint', 'diff', prefix, save(tmp_path / 'b'), '--assume', order)
    assert report['differences'] == [] == report['notes']
    assert 'E626' in etpe(*read, '--assume', 'mod', status=2)


@pytest.mark.parametrize('committed, code, known', [
    (True, 'E618', []), (False, 'E613', ['--assume', 'div'])])
def test_what_is_read_is_verified_first(etpe, tmp_path, committed, code, known):
    a, b = (save(tmp_path / name, committed=committed) for name in 'ab')
    flip(pathlib.Path(f'{a}.data-00000-of-00001'))
    for command in (['show', a, '--sample', 0, *known], ['diff', a, b]):
        report = etpe.json('checkpoint', *command, status=1)
        assert [one['code'] for one in report['findings']] == [code]
        assert code in etpe('checkpoint', *command, status=1)
    text = etpe('checkpoint', 'show', a, '--sample', 0, '--no-verify', *known)
    assert 'not verified' in text and code not in text
    assert 'not verified' not in etpe('checkpoint', 'show', b, '--sample', 0)


def test_a_manifest_that_names_what_is_not_there_is_a_finding(etpe, tmp_path):
    prefix = save(tmp_path)
    manifest = read_manifest(prefix)
    tables = {'scope/t': dataclasses.replace(manifest.tables['scope/t'], rows=IDS + 1),
              'other': manifest.tables['scope/t']}
    pathlib.Path(prefix + MANIFEST).write_bytes(
        dataclasses.replace(manifest, tables=tables, step=8).to_json())
    report = etpe.json('checkpoint', 'show', prefix, '--sample', 1, status=1)
    finding, = report['findings']
    assert finding['code'] == 'E614'
    assert finding['message'].count('tensor') == 4 and 'step 8' in finding['message']
    assert report['samples'] == []
    assert 'E614' in etpe('checkpoint', 'diff', prefix, prefix, status=2)
    assert 'E614' in etpe('checkpoint', 'verify', prefix, status=1)


@pytest.mark.parametrize('strategy, hosts', [('mod', 4), ('div', 1)])
def test_c20_checkpoints_of_other_hosts_and_strategies_are_equal(etpe, tmp_path, strategy, hosts):
    a = save(tmp_path / 'a', strategy='mod', hosts=3)
    save(tmp_path / 'b', strategy=strategy, hosts=hosts)
    assert etpe('checkpoint', 'diff', a, tmp_path / 'b') == 'no differences\n'


def test_diff_tells_which_ids_differ_and_by_how_much(etpe, tmp_path):
    values = VALUES.copy()
    values[4, 1] += .5
    values[9] = np.nan
    a = save(tmp_path / 'a', strategy='mod', hosts=2, slot=VALUES)
    b = save(tmp_path / 'b', strategy='mod', hosts=4, slot=VALUES, values=values)
    one, = etpe.json('checkpoint', 'diff', a, b, status=1)['differences']
    assert (one['name'], one['kind'], one['rows'], one['most']) == ('scope/t', 'values', 2, 'inf')
    assert one['ids'] == [[4, .5], [9, 'inf']]
    assert 'scope/t: rows 4, 9\n' in etpe('checkpoint', 'diff', a, b, status=1)
    assert etpe('checkpoint', 'diff', b, b) == 'no differences\n'  # NaN too.


def test_i22_show_and_diff_tell_whose_words_have_other_ids(etpe, tmp_path):
    prefixes = [save(tmp_path / name) for name in 'ab']
    for prefix, digit in zip(prefixes, '12'):
        words = Vocabulary(sha256=digit * 64, size=3, num_oov_buckets=0, default_value=-1)
        pathlib.Path(prefix + MANIFEST).write_bytes(dataclasses.replace(
            read_manifest(prefix), vocabularies={
                'f\x1b': words, 'g': dataclasses.replace(words, sha256='3' * 64)}).to_json())
    found = etpe.json('checkpoint', 'show', prefixes[0])['vocabularies']
    assert found[0] == {'feature': 'f\x1b', 'sha256': '1' * 64, 'size': 3, 'num_oov_buckets': 0,
                        'default_value': -1}
    lines = [line.split() for line in etpe('checkpoint', 'show', prefixes[0]).splitlines()]
    assert [r'f\x1b', '3', '0', '-1', '1' * 12] in lines
    assert etpe.json('checkpoint', 'diff', *prefixes)['notes'] == [
        rf'the words of "f\x1b" differ: 3 words (SHA-256 {"1" * 12}), default_value -1 -> '
        rf'3 words (SHA-256 {"2" * 12}), default_value -1']


def test_diff_tells_what_was_added_removed_and_of_another_shape(etpe, tmp_path):
    a = save(tmp_path / 'a', dense=(1., 2.))
    b = save(tmp_path / 'b', dense=(1., 2., 3.), name='scope/u')
    found = etpe.json('checkpoint', 'diff', a, b, status=1)['differences']
    assert [(one['kind'], one['name']) for one in found] == [
        ('changed', 'dense'), ('removed', 'scope/t'), ('removed', 'scope/t/Adagrad'),
        ('added', 'scope/u'), ('added', 'scope/u/Adagrad')]
    assert 'float64 [2] -> float64 [3]' in etpe('checkpoint', 'diff', a, b, status=1)


@pytest.mark.parametrize('one, other', [
    ('int64', [2**62, 2**62 + 1]), ('bool', [True, False]), ('complex128', [1j, 2j])])
def test_diff_sees_what_a_float_cannot_tell(etpe, tmp_path, one, other):
    a, b = (forged.write(tmp_path / name, {'v': np.array([value], one)})
            for name, value in zip('ab', other))
    assert etpe.json('checkpoint', 'diff', a, b, status=1)['differences'][0]['rows'] == 1
    assert etpe.json('checkpoint', 'diff', a, a)['differences'] == []


@pytest.mark.parametrize('committed, text', [(True, 'SHA-256 of its files'), (False, 'CRC32C')])
def test_verify_reads_all_again(etpe, tmp_path, committed, text):
    prefix = save(tmp_path, committed=committed)
    assert text in etpe('checkpoint', 'verify', prefix)
    path = pathlib.Path(f'{prefix}.data-00000-of-00001')
    flip(path)
    report, = etpe.json('checkpoint', 'verify', prefix, status=1)['checkpoints']
    assert [one['code'] for one in report['findings']] == ['E618' if committed else 'E613']
    assert 'tensor "scope/t"' in report['findings'][0]['message']
    path.write_bytes(path.read_bytes()[:-1])
    assert ('E618' if committed else 'E613') in etpe('checkpoint', 'verify', prefix, status=1)


def test_verify_of_a_directory_looks_at_all(etpe, model_dir):
    report = etpe.json('checkpoint', 'verify', model_dir, status=1)
    assert [(one['by'], [finding['code'] for finding in one['findings']])
            for one in report['checkpoints']] == [
        ('sha256', []), ('crc32c', []), ('sha256', ['E618'])]


def test_n01_verify_finds_numbers_that_are_not_finite(etpe, tmp_path):
    prefix = save(tmp_path, dense=(1., np.inf))
    text = etpe('checkpoint', 'verify', prefix, status=1)
    assert ('E646 checkpoint model.ckpt-7: the numbers of tensor "dense" must be finite; got 1 '
            'row with NaN or infinity') in text


def test_names_of_strangers_do_not_steer_a_terminal(etpe, tmp_path):
    prefix = str(tmp_path / 'm')
    forged.write_index(prefix, {b'a\x1b[31m': entry(1, [0]), b'\xe2\x80\xae': entry(1, [0]),
                                b'\xfe': entry(1, [0])})
    (tmp_path / 'x\x1b.index').write_bytes(b'')
    for command in (['ls', tmp_path], ['show', prefix], ['verify', tmp_path]):
        for form in ('text', 'json'):
            status = 0 if command[0] == 'show' else 1
            assert '\x1b' not in etpe('checkpoint', *command, '--format', form, status=status)


def test_it_runs_without_tensorflow_and_lists_without_numpy(tmp_path):
    save(tmp_path)
    for module in ('tensorflow', 'numpy'):
        (tmp_path / f'{module}.py').write_text('raise RuntimeError("imported")')
    done = run_etpe('checkpoint', 'ls', tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0 and 'committed' in done.stdout
    (tmp_path / 'numpy.py').unlink()
    for arguments in (['show', tmp_path, '--sample', '1'], ['diff', tmp_path, tmp_path],
                      ['verify', tmp_path]):
        assert run_etpe('checkpoint', *arguments, PYTHONPATH=str(tmp_path)).returncode == 0


def test_a_table_of_anything_but_floats_is_a_finding(etpe, tmp_path):
    prefix = save(tmp_path)
    forged.write_index(prefix, {b'scope/t': entry(7, [IDS, WIDTH], size=4 + IDS * WIDTH)},
                       bytes(4 + IDS * WIDTH))
    finding, = etpe.json('checkpoint', 'show', prefix, '--sample', 1, status=1)['findings']
    assert 'floats of 11 x 3 in tensor "scope/t"' in finding['message']


def test_diff_of_tables_of_other_sizes_compares_the_ids_of_both(etpe, tmp_path):
    values = VALUES[:8].copy()
    values[3, 0] += .5
    pair = [save(tmp_path / 'a', strategy='mod', hosts=2),
            save(tmp_path / 'b', strategy='mod', hosts=3, values=values, slot=VALUES[:8] * 2)]
    for both, new in ((pair, -3), (pair[::-1], 3)):
        table, slot = etpe.json('checkpoint', 'diff', *both, status=1)['differences']
        assert (table['kind'], table['rows'], table['new'], table['ids']) == (
            'resized', 1, new, [[3, .5]])
        assert (slot['kind'], slot['rows'], slot['new'], slot['ids']) == ('resized', 0, new, [])
        text = etpe('checkpoint', 'diff', *both, status=1)
        assert f'3 rows {"more" if new > 0 else "fewer"}' in text and 'scope/t: row 3\n' in text


def test_diff_compares_tables_that_were_renamed(etpe, tmp_path):
    a, b = save(tmp_path / 'a'), save(tmp_path / 'b', name='scope/u', strategy='mod')
    assert etpe('checkpoint', 'diff', a, b, '--rename', 't=u') == 'no differences\n'
    assert 'E630 --rename' in etpe('checkpoint', 'diff', a, b, '--rename', 't=x', status=2)
    assert 'E626 --rename' in etpe('checkpoint', 'diff', a, b, '--rename', 't', status=2)
