import pytest
from harness.processes import ROOT

from estimator_tpu_embedding.cli.etpe_docs import topics

PACKAGE = ROOT / 'estimator_tpu_embedding'


def test_the_list_has_a_line_for_each_topic(etpe):
    head, *lines, last = etpe('docs').splitlines()
    assert head.split() == ['topic', 'title']
    assert [line.split()[0] for line in lines] == list(topics())
    assert 'checkpoints' in topics() and 'lost-names' in topics()
    assert last == 'etpe docs TOPIC prints one of them.'


def test_a_pipe_gets_the_file_as_it_is(etpe):
    for topic, path in [('checkpoints', 'docs/checkpoints.md'), ('lost-names', 'LOST_NAMES.md')]:
        assert etpe('docs', topic) == (PACKAGE / path).read_text()


def test_programs_get_the_same(etpe):
    text = (PACKAGE / 'docs' / 'limits.md').read_text()
    assert etpe.json('docs', 'limits') == {
        'format': 1, 'command': 'docs', 'topic': 'limits', 'title': 'What does not run',
        'text': text}
    assert {'topic': 'limits', 'title': 'What does not run'} in etpe.json('docs')['topics']


@pytest.mark.parametrize('link, topic', [
    ('tf2.md', 'tf2'), ('../LOST_NAMES.md', 'lost-names'), ('Kernels', 'kernels')])
def test_a_link_in_a_text_names_its_topic(etpe, link, topic):
    assert etpe('docs', link) == etpe('docs', topic)


def test_an_unknown_topic_is_a_wrong_usage_that_lists_them(etpe):
    said = etpe('docs', 'kernel', status=2)
    assert "'kernel'" in said and all(topic in said for topic in topics())
    assert '\x1b' not in etpe('docs', '\x1b[31m', status=2)
