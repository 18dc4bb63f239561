import pytest
from harness.commands import SEVERAL, config_of, saved
from harness.profiles import profile_of, subject
from harness.work import calls_of

from estimator_tpu_embedding.checkpoint import profile_files
from estimator_tpu_embedding.core import table_profile

TEXT = f'''\
{SEVERAL}: global 8 = 2 hosts x 2 cores x 2, mod
table  rows  rows per host  padded per host
a         2              1             32 B
b        10              5            320 B
c         7         3 to 4            256 B
d         7         3 to 4            256 B
e         7         3 to 4            256 B
host  rows  bytes   padded
0       18  600 B  1.1 KiB
1       15  504 B    928 B
rows per host 15 to 18, max/mean 1.09; padded bytes 928 B to 1.1 KiB, max/mean 1.09
'''
# c on host 0: 4 rows x 8 floats x 4 bytes x (table and slot) = 256.


def test_rows_and_bytes_are_shown_by_host(etpe):
    assert etpe('plan', SEVERAL) == TEXT


def test_another_topology_keeps_the_global_batch(etpe):
    assert 'global 8 = 4 hosts x 1 core x 2, mod\n' in etpe(
        'plan', SEVERAL, '--hosts', 4, '--cores', 1)
    said = etpe('plan', SEVERAL, '--hosts', 3, '--cores', 1, status=1)
    assert '3 hosts x 1 core, mod\n' in said
    assert said.endswith('E411 batch_size: batch size 8 must be divisible by number of replicas '
                         '3; got 8 over 3 hosts x 1 core.  Use 6 or 9.\n')


def test_of_many_hosts_the_first_and_the_last_are_shown(etpe):
    lines = etpe('plan', SEVERAL, '--hosts', 4096, '--cores', 1, status=1).splitlines()
    assert [line.split()[0] for line in lines[8:15]] == [
        '0', '1', '2', '...', '4093', '4094', '4095']
    assert lines[8].split() == ['0', '5', '152', 'B', '288', 'B']
    assert lines[-2].startswith('rows per host 5 to 5, max/mean 1.00')  # One of each table.


def test_4096_hosts_take_no_work_for_each_table_of_each(etpe, tmp_path):
    config = config_of('census_training_1x1.pbtxt')
    for number in range(1000):
        config.table_descriptor.add().CopyFrom(config.table_descriptor[0])
        config.table_descriptor[-1].name = f'table_{number}'
        config.table_descriptor[-1].vocabulary_size = 10**6 + number
    path = saved(tmp_path, config)
    texts = []
    assert calls_of(lambda: texts.append(etpe(
        'plan', path, '--hosts', 4096, '--cores', 1, status=1))) < 10**6
    assert max(map(len, texts[0].splitlines())) < 200


def test_programs_get_every_host(etpe):
    plan, = etpe.json('plan', SEVERAL, '--hosts', 3, '--cores', 1, status=1)['plans']
    assert (plan['hosts'], plan['cores_per_host'], plan['batch_size']) == (3, 1, 8)
    # a, which has 2 rows, 1 1 1; b 4 3 3, each of c, d, e 3 2 2.
    assert plan['rows_of_host'] == [14, 10, 10]
    assert plan['tables'][2]['rows_per_host'] == {'min': 2, 'max': 3}
    assert plan['findings'][0].startswith('E411')


def test_an_illegal_topology_is_status_2(etpe):
    for arguments in (['--hosts', '0'], ['--hosts', '4097'], ['--cores', '-1']):
        assert 'etpe plan: E410 topology' in etpe('plan', SEVERAL, *arguments, status=2)


def test_cores_that_hosts_cannot_share_are_an_error_and_not_another_topology(etpe, tmp_path):
    config = config_of()
    config.num_hosts, config.num_tensor_cores = 3, 8
    path = saved(tmp_path, config)
    for arguments in ([], ['--hosts', '4']):
        assert 'E410' in etpe('plan', path, *arguments, status=2)
    assert '3 hosts x 8 cores' in etpe('plan', path, '--cores', 8, status=1)


def test_slots_that_are_not_known_are_said_to_be_left_out(etpe, tmp_path):
    config = config_of()
    config.table_descriptor[1].optimization_parameters.bounded_adagrad.SetInParent()
    path = saved(tmp_path, config)
    for command, key in (('plan', 'plans'), ('size', 'sizes')):
        assert '\nnot counted: the slots of "b", which are not known\n' in etpe(command, path)
        assert etpe.json(command, path)[key][0]['slots_unknown'] == ['b']
        assert etpe.json(command, SEVERAL)[key][0]['slots_unknown'] == []


RUN = {'hosts': 2, 'cores': 2, 'batch_size': 8, 'strategy': 'mod'}
B = profile_of(subject(10, table='b', dimension=5, **RUN), [[0, 0, 0, 1, 1, 1, 9, 9]])
C = profile_of(subject(7, table='c', dimension=4, **RUN), [[0, 1, 2, 3]])
MEASURED = '''\
look-ups measured, from {directory}:
table   steps  ids per example  max/mean, div  max/mean, mod
b      1 of 1             1.00           1.50           1.25
c      1 of 1             0.50           2.00           1.00
bytes of looked-up rows by host, max/mean: div 1.67, mod 1.17; mod balances better
without a profile: "a", "d", "e"
'''
# On 2 hosts b has 6 and 2 ids under div, 3 and 5 under mod; c 4 and 0, 2 and 2. All rows are
# padded to 32 bytes, so of all 12 ids div has 10 on host 0, 10 / 6 = 1.67, and mod 7 on host 1.


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / 'profiles'
    path.mkdir()
    for one in (B, C):
        profile_files.write(str(path), one)
    return path


def test_what_was_measured_is_shown_and_what_lacks_is_named(etpe, directory):
    profile_files.write(str(directory), profile_of(subject(table='zebra'), [[1]]))
    profile_files.write(str(directory), profile_of(subject(11, table='b', dimension=5), [[1]]))
    said = etpe('plan', SEVERAL, '--stats', directory)
    assert said == TEXT + MEASURED.format(directory=directory)


def test_programs_get_all_that_was_measured(etpe, directory):
    stats = etpe.json('plan', SEVERAL, '--stats', directory)['plans'][0]['stats']
    assert (stats['directory'], stats['recommended']) == (str(directory), 'mod')
    assert stats['imbalance'] == {'div': 1.666667, 'mod': 1.166667}
    # 32 bytes a row, over 8 examples.
    assert stats['bytes_per_example_of_host'] == {'div': [40.0, 8.0], 'mod': [20.0, 28.0]}
    assert stats['without_profile'] == ['a', 'd', 'e']
    b, c = stats['tables']
    assert b == {
        'name': 'b', 'first_step': 0, 'last_step': 1, 'steps': 1, 'sampled_steps': 1,
        'run': {'hosts': 2, 'cores_per_host': 2, 'batch_size': 8, 'strategy': 'mod'},
        'ids_per_example': 1.0, 'features': [{'name': 'f', 'ids_per_example': 1.0}],
        'load': {'div': {'imbalance': 1.5, 'uncertain': 0.0},
                 'mod': {'imbalance': 1.25, 'uncertain': 0.0}}}
    assert etpe.json('plan', SEVERAL)['plans'][0]['stats'] is None


def test_the_load_is_that_of_the_planned_hosts(etpe, directory):
    stats = etpe.json('plan', SEVERAL, '--stats', directory, '--hosts', 4, '--cores', 1)[
        'plans'][0]['stats']
    b = stats['tables'][0]['load']
    # b on 0 to 2, 3 to 5, 6 and 7, 8 and 9: 6 0 0 2 of 8; mod: 3 5 0 0.
    assert (b['div']['imbalance'], b['mod']['imbalance']) == (3.0, 2.5)


def test_estimates_are_marked(etpe, tmp_path, monkeypatch):
    monkeypatch.setattr(table_profile, 'MAX_RANGES', 2)
    about = subject(10, table='b', dimension=5, **RUN)
    profile_files.write(str(tmp_path), profile_of(about, [[3] * 5 + [0, 2, 8]]))
    said = etpe('plan', SEVERAL, '--stats', tmp_path, '--hosts', 4, '--cores', 1)
    # Rows 0 to 4 have 7 ids, on hosts 0 and 1: 7 * 3 / 5 = 4.2 on host 0. Under mod 5 are on 3.
    assert said.splitlines()[-3].split()[-2:] == ['~2.10', '2.50']


def test_a_vocabulary_that_the_config_raises_to_its_hosts_is_the_same_table(etpe, tmp_path):
    config = config_of()
    config.num_hosts = config.num_tensor_cores = 4
    config.table_descriptor[0].vocabulary_size = 4  # Of 3 rows that were declared.
    declared = profile_of(subject(3, table='a', dimension=4, hosts=4, batch_size=8), [[2, 2, 0]])
    profile_files.write(str(tmp_path), declared)
    table, = etpe.json('plan', saved(tmp_path, config), '--stats', tmp_path)['plans'][0][
        'stats']['tables']
    # 2 of 3 ids on one of 4 hosts.
    assert (table['name'], table['load']['div']['imbalance']) == ('a', 2.666667)


@pytest.mark.parametrize('content', [b'', b'garbage', b'\0' * 3_000_000, b'\x72\x00' * 200_000])
def test_a_damaged_profile_is_an_error_that_names_it(etpe, directory, content):
    (directory / 'x\x1b[2J.profile').write_bytes(content)
    said = etpe('plan', SEVERAL, '--stats', directory, status=2)
    assert said.startswith('etpe plan: E493 ') and said.count('\n') == 1
    assert 'x\\x1b[2J.profile: ' in said and said.strip().isprintable()
