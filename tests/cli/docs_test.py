import io
import re
import sys

import pytest
from harness.processes import ROOT

from estimator_tpu_embedding.cli.docs import topics
from estimator_tpu_embedding.cli.main import main

PACKAGE = ROOT / 'estimator_tpu_embedding'


def test_the_list_has_a_line_for_each_topic(etpe):
    head, *lines, last = etpe('docs').splitlines()
    assert head.split() == ['topic', 'title']
    assert [line.split()[0] for line in lines] == list(topics())
    assert 'checkpoints' in topics() and 'lost-names' in topics()
    assert last == 'etpe docs TOPIC prints one of them.'


def test_titles_are_the_first_lines_and_short_enough_for_the_list(etpe):
    listed = etpe('docs')
    for topic, file in topics().items():
        title = file.read_text('utf-8').splitlines()[0]
        assert title.startswith('# ')
        assert f'{topic}  ' in listed and f'  {title[2:]}\n' in listed


def test_a_pipe_gets_the_file_as_it_is(etpe):
    for topic, path in [('checkpoints', 'docs/checkpoints.md'), ('lost-names', 'LOST_NAMES.md'),
                        ('architecture', 'ARCHITECTURE.md')]:
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


@pytest.fixture
def on_terminal(monkeypatch):
    """Prints a topic on a terminal of some columns."""
    pytest.importorskip('rich')

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def show(topic, columns):
        for variable in ('NO_COLOR', 'FORCE_COLOR', 'TTY_COMPATIBLE'):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv('TERM', 'xterm-256color')
        monkeypatch.setenv('COLUMNS', str(columns))
        monkeypatch.setattr(sys, 'stdout', Terminal())
        assert main(['docs', topic]) == 0
        return sys.stdout.getvalue()
    return show


@pytest.mark.parametrize('topic', ['differences', 'lost-names'])
def test_a_narrow_terminal_breaks_names_and_cuts_none(on_terminal, topic):
    text = re.sub(r'\x1b\[[\d;]*m', '', on_terminal(topic, 80))
    assert '…' not in text and max(map(len, text.splitlines())) <= 80


def test_a_terminal_gets_headings_and_no_marks(on_terminal):
    text = on_terminal('security', 80)
    assert '\x1b[1m' in text and '# Security' not in text and '`' not in text
    assert ']8;' not in text  # A relative link would lead nowhere in a terminal.
