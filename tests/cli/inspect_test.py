import dataclasses
import json
import pathlib

from harness import forged_job
from harness.commands import SEVERAL, config_of, saved

from estimator_tpu_embedding.checkpoint.file_names import MANIFEST
from estimator_tpu_embedding.checkpoint.manifest import read_manifest

TEXT = f'''\
{SEVERAL}: training, global 8 = 2 hosts x 2 cores x 2, mod, pipelined
table  rows  dim  pad  optimizer                                                  rate   slots  \
features           bytes  padded
a         2    4    8  stochastic_gradient_descent clip_gradients=[-1, 0]         0.5        0  \
#0 [2]              32 B    64 B
b        10    5    8  adagrad accumulate=False                                   0.25       1  \
#1 [2], #2 [2, 3]  400 B   640 B
c         7    4    8  adagrad accumulate=False                                   tag 0      1  \
#3 [2]             224 B   448 B
d         7    4    8  adagrad clip_weights=[-2, ..] decay=0.01 decay_times_rate  tag 1      1  \
#4 [2]             224 B   448 B
e         7    4    8  adagrad accumulate=False                                   tag 0      1  \
#5 [2, 2]          224 B   448 B
5 tables, 1.1 KiB, padded 2.0 KiB
'''
# b: 10 rows x 5 floats x 4 bytes x (table and 1 slot) = 400; with 8 floats 640.


def test_tables_are_shown_with_what_they_cost_and_how_they_are_trained(etpe):
    assert etpe('inspect', SEVERAL) == TEXT


def test_features_of_tf2_are_shown_with_names_and_shapes_of_any_rank(etpe):
    lines = etpe('inspect', '../tf2_configs/features.pbtxt').splitlines()
    assert 'batch of unknown size' in lines[0]  # Each feature has its own.
    assert [line.split('  ')[0] for line in lines[2:5]] == ['a', 'b', 'table_1']
    for line, features in zip(lines[2:], (
            'named [6]', 'named [6, 5], #2 [6]', '#1 [2, 3, 4]')):
        assert f'  {features}  ' in line


def test_the_report_for_programs_keeps_its_form(etpe):
    report = etpe.json('inspect', SEVERAL)
    assert (report['format'], report['command']) == (1, 'inspect')
    config, = report['configs']
    tables = config.pop('tables')
    assert config == {
        'where': SEVERAL, 'kind': 'config', 'mode': 'training', 'hosts': 2, 'cores': 4,
        'batch_size_per_core': 2, 'strategy': 'mod', 'settings': {'pipelined': True},
        'strays': [], 'bytes': 32 + 400 + 3 * 224, 'padded_bytes': 64 + 640 + 3 * 448}
    assert tables[3] == {
        'name': 'd', 'rows': 7, 'dimension': 4, 'padded_dimension': 8, 'optimizer': 'adagrad',
        'settings': {'clip_weights': [-2.0, None], 'decay': 0.01, 'decay_times_rate': True},
        'learning_rate': None, 'tag': 1, 'slots': ['Adagrad'],
        'features': [{'position': 4, 'name': '', 'shape': [2]}], 'bytes': 224,
        'padded_bytes': 448}


def test_a_checkpoint_is_shown_as_by_checkpoint_show_with_its_config(etpe, tmp_path):
    prefix = forged_job.save(tmp_path, 9)
    shown = etpe.json('checkpoint', 'show', prefix)
    report = etpe.json('inspect', prefix)
    assert report['configs'] == [] and report['checkpoint'].items() <= shown.items()
    assert etpe('inspect', tmp_path) == etpe('checkpoint', 'show', prefix)
    manifest = dataclasses.replace(read_manifest(prefix), config=config_of().SerializeToString())
    with open(prefix + MANIFEST, 'wb') as file:
        file.write(manifest.to_json())
    assert len(etpe.json('inspect', prefix)['configs'][0]['tables']) == 5
    said = etpe('inspect', tmp_path)
    assert said.startswith(etpe('checkpoint', 'show', prefix)) and said.endswith(
        TEXT.partition(SEVERAL)[2])
    assert etpe('diff', prefix, SEVERAL) == 'no differences\n'
    pathlib.Path(f'{prefix}.index').unlink()  # The config is shown all the same.
    report = etpe.json('inspect', prefix, status=1)
    assert [one['code'] for one in report['findings']] == ['E613'] and report['configs']
    assert etpe('inspect', prefix, status=1).endswith(TEXT.partition(SEVERAL)[2])


def test_a_broken_config_is_shown_as_it_is(etpe, tmp_path):
    config = config_of()
    config.mode, config.sharding_strategy, config.num_hosts = 99, 7, 0
    config.feature_descriptor[0].table_id = 55
    config.feature_descriptor[1].input_shape[:] = []
    config.table_descriptor[1].vocabulary_size = -1
    config.table_descriptor[2].dimension = 0
    config.table_descriptor[3].optimization_parameters.bounded_adagrad.max_accumulator = 0.5
    config.table_descriptor[4].optimization_parameters.ClearField('adagrad')
    config.table_descriptor[0].optimization_parameters.learning_rate.constant = float('nan')
    path = saved(tmp_path, config)
    text = etpe('inspect', path)
    assert 'mode 99, 0 hosts, 4 cores in all, sharding_strategy 7, pipelined' in text
    assert 'features without a table: #0 [2]' in text
    assert '? stands for slots that are not known' in text
    shown, = etpe.json('inspect', path)['configs']
    assert [table['learning_rate'] for table in shown['tables'][:2]] == ['nan', 0.25]
    assert shown['tables'][3]['settings']['max_accumulator'] == 0.5
    assert [table['slots'] for table in shown['tables'][3:]] == [None, None]
    assert [table['bytes'] for table in shown['tables'][1:3]] == [0, 0]


def test_output_for_programs_is_ascii_and_has_no_number_that_json_lacks(etpe, tmp_path):
    config = config_of()
    config.table_descriptor[0].name = 'naïve\u202e\x1b'
    config.table_descriptor[0].optimization_parameters.weight_decay_factor = float('inf')
    text = etpe('inspect', saved(tmp_path, config), '--format', 'json')
    assert text.isascii() and '\x1b' not in text

    def refuse(name):
        raise AssertionError(name)

    table = json.loads(text, parse_constant=refuse)['configs'][0]['tables'][-1]
    assert (table['name'], table['settings']['decay']) == ('naïve\u202e\x1b', 'inf')
