import pytest
from harness.commands import SEVERAL, config_of, saved
from harness.work import calls_of

TEXT = f'''\
{SEVERAL}: 5 tables, 1.1 KiB, padded 2.0 KiB
table  rows  dim  pad  table  slots          bytes  padded   share
a         2    4    8   64 B                  32 B    64 B   3.1 %
b        10    5    8  320 B  Adagrad 320 B  400 B   640 B  31.2 %
c         7    4    8  224 B  Adagrad 224 B  224 B   448 B  21.9 %
d         7    4    8  224 B  Adagrad 224 B  224 B   448 B  21.9 %
e         7    4    8  224 B  Adagrad 224 B  224 B   448 B  21.9 %
'''


def test_bytes_are_shown_by_table_and_slot(etpe):
    assert etpe('size', SEVERAL) == TEXT


def test_programs_get_bytes(etpe):
    size, = etpe.json('size', SEVERAL)['sizes']
    assert (size['bytes'], size['padded_bytes']) == (1104, 2048)
    assert size['tables'][1] == {
        'name': 'b', 'rows': 10, 'dimension': 5, 'padded_dimension': 8, 'slots': ['Adagrad'],
        'table_bytes': 320, 'slot_bytes': 320, 'bytes': 400, 'padded_bytes': 640}


@pytest.mark.parametrize('command, files', [('size', 1), ('plan', 1), ('inspect', 1), ('diff', 2)])
def test_ten_times_as_many_tables_are_ten_times_the_work(etpe, tmp_path, command, files):
    def work(tables):
        config = config_of('census_training_1x1.pbtxt')
        for number in range(tables - len(config.table_descriptor)):
            config.table_descriptor.add().CopyFrom(config.table_descriptor[0])
            config.table_descriptor[-1].name = f'table_{number}'
        path = saved(tmp_path, config)
        return calls_of(lambda: etpe(command, *[path] * files))

    work(10)
    assert work(10_000) < 12 * work(1_000)  # The most that there may be.
