"""`etpe plan --stats`: measured look-ups, and what other hosts would have of them."""

import os

import pytest
from harness.commands import SEVERAL, config_of, saved
from harness.profiles import profile_of, subject

from estimator_tpu_embedding.checkpoint import profile_files
from estimator_tpu_embedding.core import table_profile

RUN = {'hosts': 2, 'cores': 2, 'batch_size': 8, 'strategy': 'mod'}
B = profile_of(subject(10, table='b', dimension=5, **RUN), [[0, 0, 0, 1, 1, 1, 9, 9]])
C = profile_of(subject(7, table='c', dimension=4, **RUN), [[0, 1, 2, 3]])
TEXT = '''\
look-ups measured, from {directory}:
table   steps  ids per example  max/mean, div  max/mean, mod
b      1 of 1             1.00           1.50           1.25
c      1 of 1             0.50           2.00           1.00
bytes of looked-up rows by host, max/mean: div 1.67, mod 1.17; mod balances better
without a profile: "a", "d", "e"
profiles not used: "b, 11 x 5", "zebra, 10 x 2"
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
    assert said == etpe('plan', SEVERAL) + TEXT.format(directory=directory)


def test_programs_get_all_that_was_measured(etpe, directory):
    stats = etpe.json('plan', SEVERAL, '--stats', directory)['plans'][0]['stats']
    assert (stats['directory'], stats['recommended']) == (str(directory), 'mod')
    assert stats['imbalance'] == {'div': 1.666667, 'mod': 1.166667}
    # 32 bytes a row, over 8 examples.
    assert stats['bytes_per_example_of_host'] == {'div': [40.0, 8.0], 'mod': [20.0, 28.0]}
    assert (stats['without_profile'], stats['unused']) == (['a', 'd', 'e'], [])
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
    b, c = (table['load'] for table in stats['tables'])
    # b on 0 to 2, 3 to 5, 6 and 7, 8 and 9: 6 0 0 2 of 8; mod: 3 5 0 0.
    assert (b['div']['imbalance'], b['mod']['imbalance']) == (3.0, 2.5)
    # c on 0 and 1, 2 and 3, 4 and 5, 6: 2 2 0 0 of 4; mod: one each.
    assert (c['div']['imbalance'], c['mod']['imbalance']) == (2.0, 1.0)


def test_estimates_are_marked(etpe, tmp_path, monkeypatch):
    monkeypatch.setattr(table_profile, 'MAX_RANGES', 2)
    about = subject(10, table='b', dimension=5, **RUN)
    profile_files.write(str(tmp_path), profile_of(about, [[3] * 5 + [0, 2, 8]]))
    said = etpe('plan', SEVERAL, '--stats', tmp_path, '--hosts', 4, '--cores', 1)
    # Rows 0 to 4 have 7 ids, on hosts 0 and 1: 7 * 3 / 5 = 4.2 on host 0. Under mod 5 are on 3.
    assert said.splitlines()[-3].split()[-2:] == ['~2.10', '2.50']


def test_one_host_and_alike_strategies_get_no_advice(etpe, directory):
    one = etpe('plan', SEVERAL, '--stats', directory, '--hosts', 1, '--cores', 4)
    assert 'max/mean: div 1.00, mod 1.00\n' in one
    os.unlink(directory / profile_files.file_name(C.subject))
    profile_files.write(str(directory), profile_of(B.subject, [[0, 0, 9]]))
    assert 'max/mean: div 1.33, mod 1.33\n' in etpe('plan', SEVERAL, '--stats', directory)


def test_of_several_profiles_that_of_the_planned_hosts_then_the_longest_is_taken(etpe, directory):
    for hosts, steps in ((4, [[9]]), (8, [[9]] * 3)):
        profile_files.write(str(directory), profile_of(subject(
            10, table='b', dimension=5, hosts=hosts, batch_size=8), steps))

    def taken(hosts):
        stats = etpe.json('plan', SEVERAL, '--stats', directory, '--hosts', hosts, '--cores', 1)[
            'plans'][0]['stats']
        return stats['tables'][0]['run']['hosts']

    assert [taken(hosts) for hosts in (1, 2, 4, 8)] == [8, 2, 4, 8]


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


def test_an_empty_directory_has_profiles_of_no_table(etpe, tmp_path):
    said = etpe('plan', SEVERAL, '--stats', tmp_path)
    assert said.endswith(f'look-ups measured, from {tmp_path}:\n'
                         'without a profile: "a", "b", "c", "d", "e"\n')
