import io
import sys

import pytest
from harness.commands import config_of, saved

from estimator_tpu_embedding.cli.report import printable

HOSTILE = 'e\x1b]52;c;x\x07\nvil\u202e\u200f\x00\x9b31m|`<b>'


@pytest.mark.parametrize('text, shown', [
    ('tbl_ä/x-1', 'tbl_ä/x-1'), ('a\x1b[31m', r'a\x1b[31m'), ('a\nb\tc\r', r'a\nb\tc\r'),
    ('\u202e\u200f\x00\x9b', r'\u202e\u200f\x00\x9b'), ('\ud800', r'\ud800')])
def test_what_could_steer_a_terminal_is_shown_as_its_escape(text, shown):
    assert printable(text) == shown


def test_long_text_is_cut_in_its_middle():
    assert printable('a' * 5000 + 'z', 9) == 'aaaa…aaaz'
    assert printable('123456789', 9) == '123456789'


def hostile(tmp_path):
    """A config of strangers, and the same with one more row."""
    config = config_of()
    for number, table in enumerate(config.table_descriptor):
        table.name = HOSTILE + str(number) + 'y' * 5000
    config.feature_descriptor[0].name = HOSTILE
    config.profile_data_directory = HOSTILE
    path = saved(tmp_path, config)
    config.table_descriptor[0].vocabulary_size = 3
    config.table_descriptor[1].name = HOSTILE
    return path, saved(tmp_path, config, 'other.pb')


@pytest.mark.parametrize('command, status', [
    ('inspect', 0), ('validate', 1), ('size', 0), ('plan', 0), ('diff', 1)])
def test_nothing_of_a_hostile_name_reaches_the_terminal(etpe, tmp_path, command, status):
    a, b = hostile(tmp_path)
    text = etpe(command, a, *([b] if command == 'diff' else []), status=status)
    assert not {char for char in text if not char.isprintable()} - {'\n'}
    assert r'\x1b]52;c;x\x07\nvil\u202e\u200f\x00\x9b31m' in text
    assert max(map(len, text.splitlines())) < 1000


@pytest.mark.parametrize('command', ['inspect', 'validate', 'size', 'plan'])
def test_a_terminal_gets_colours_but_no_code_of_a_name(etpe, tmp_path, monkeypatch, command):
    path, _ = hostile(tmp_path)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv('NO_COLOR', raising=False)
    monkeypatch.setenv('TERM', 'xterm-256color')
    monkeypatch.setattr(sys, 'stdout', Terminal())
    from estimator_tpu_embedding.cli.main import main
    main([command, str(path)])
    text = sys.stdout.getvalue()
    assert '\x1b[1m' in text or '\x1b[31m' in text
    assert '\x1b]52' not in text and '\u202e' not in text and '\x07' not in text


def test_a_stream_that_cannot_say_a_letter_gets_its_escape(etpe, tmp_path, monkeypatch):
    config = config_of()
    config.table_descriptor[0].name = 'ä'
    path = saved(tmp_path, config)
    stream = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
    monkeypatch.setattr(sys, 'stdout', stream)
    from estimator_tpu_embedding.cli.main import main
    assert main(['inspect', str(path)]) == 0
    assert rb'\xe4' in stream.buffer.getvalue()
