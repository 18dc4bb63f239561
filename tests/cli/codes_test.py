import pathlib
import re

import estimator_tpu_embedding
from estimator_tpu_embedding.cli.codes import ENTRIES
from estimator_tpu_embedding.cli.etpe_docs import topics

PACKAGE = pathlib.Path(estimator_tpu_embedding.__file__).parent


def test_every_code_of_the_sources_has_an_entry_and_every_entry_a_source():
    used = {code for path in PACKAGE.rglob('*.py')
            for code in re.findall(r"'([EWI]\d{3})'", path.read_text())}
    assert used == ENTRIES.keys()


def test_each_code_has_a_short_title_and_a_page_of_the_documents():
    for title, topic in ENTRIES.values():
        assert 0 < len(title) <= 60 and not title.endswith('.')
        assert topic in topics()


def test_all_codes_are_listed_in_order(etpe):
    lines = etpe('explain').splitlines()
    assert lines[0].split() == ['code', 'severity', 'title', 'topic']
    assert [line.split()[0] for line in lines[1:]] == sorted(ENTRIES)
    codes = etpe.json('explain')['codes']
    assert {'code': 'W410', 'severity': 'warning', 'title': 'padding wastes memory',
            'topic': 'configs'} in codes
    assert len(codes) == len(ENTRIES)


def test_a_code_is_explained_to_people_and_programs(etpe):
    assert etpe('explain', 'e412') == '''\
E412 (error): illegal vocabulary size
The message says what was expected, what came and what to do.
More: etpe docs configs
'''
    assert etpe.json('explain', 'W420') == {
        'format': 1, 'command': 'explain', 'code': 'W420', 'severity': 'warning',
        'title': 'learning rate 0', 'topic': 'configs'}


def test_an_unknown_code_names_the_nearest(etpe):
    assert "unknown code 'E412X'.  Did you mean \"E412\"?" in etpe('explain', 'E412X', status=2)
    assert "unknown code '\\x1b[31m'" in etpe('explain', '\x1b[31m', status=2)
