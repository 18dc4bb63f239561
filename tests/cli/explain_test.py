import pytest


@pytest.mark.parametrize('given', ['E412', 'e412'])
def test_a_code_is_explained(etpe, given):
    assert etpe('explain', given) == '''\
E412 (error): illegal vocabulary size
The message says what was expected, what came and what to do.
More: etpe docs configs
'''


def test_programs_get_the_same(etpe):
    assert etpe.json('explain', 'W420') == {
        'format': 1, 'command': 'explain', 'code': 'W420', 'severity': 'warning',
        'title': 'learning rate 0', 'topic': 'configs'}


def test_an_unknown_code_names_the_nearest(etpe):
    assert "unknown code 'E4123'; did you mean E412?" in etpe('explain', 'E4123', status=2)
    assert "unknown code '\\x1b[31m'" in etpe('explain', '\x1b[31m', status=2)
