import pytest

from estimator_tpu_embedding.cli.codes import ENTRIES


@pytest.mark.parametrize('given', ['E412', 'e412'])
def test_a_code_is_explained(etpe, given):
    assert etpe('explain', given) == '''\
E412 (error): illegal vocabulary size
A table has 1 to 2147483647 rows, since ids are 32-bit in the hardware.
Set it to the largest id + 1; hash ids that are larger.
'''


def test_programs_get_the_same(etpe):
    title, meaning, remedy = ENTRIES['W420']
    assert etpe.json('explain', 'W420') == {
        'format': 1, 'command': 'explain', 'code': 'W420', 'severity': 'warning',
        'title': title, 'meaning': meaning, 'remedy': remedy}


def test_a_code_of_the_doctor_has_an_example(etpe):
    text = etpe('explain', 'E121')
    assert text.startswith('E121 (error): NumPy name that is gone\n')
    assert text.endswith('Before:\nnp.in1d(ids, known)\nAfter:\nnp.isin(ids, known)\n')
    found = etpe.json('explain', 'I302')
    assert (found['severity'], found['before'], found['after']) == (
        'information', 'tf.placeholder(tf.int32)', 'etpe run --tf1 train.py')
    assert 'After:\n```python\nnp.isin(ids, known)\n```' in etpe(
        'explain', 'E121', '--format', 'md').replace('\n\n', '\n')


def test_an_unknown_code_names_the_nearest(etpe):
    assert "unknown code 'E4123'; did you mean E412?" in etpe('explain', 'E4123', status=2)
    assert "unknown code '\\x1b[31m'" in etpe('explain', '\x1b[31m', status=2)
