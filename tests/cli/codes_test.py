import pathlib
import re

import pytest

import estimator_tpu_embedding
from estimator_tpu_embedding.cli.codes import ENTRIES, nearest
from estimator_tpu_embedding.cli.docs import topics

PACKAGE = pathlib.Path(estimator_tpu_embedding.__file__).parent


def test_every_code_of_the_sources_has_an_entry_and_every_entry_a_source():
    used = {code for path in PACKAGE.rglob('*.py')
            for code in re.findall(r"'([EWI]\d{3})'", path.read_text())}
    assert used == ENTRIES.keys()


def test_each_code_has_a_short_title_and_a_page_of_the_documents():
    for title, topic in ENTRIES.values():
        assert 0 < len(title) <= 60 and not title.endswith('.')
        assert topic in topics()


@pytest.mark.parametrize('text, code', [
    ('e412', 'E412'), ('E4123', 'E412'), ('W41', 'W410')])
def test_the_nearest_code_begins_most_alike(text, code):
    assert nearest(text) == code


def test_there_is_a_nearest_code_to_anything():
    assert all(nearest(text) in ENTRIES for text in ('', 'K', 'x' * 99))
