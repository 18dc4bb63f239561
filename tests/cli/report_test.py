import io
import sys

import pytest
from harness.commands import config_of, saved

from estimator_tpu_embedding.cli.main import main

HOSTILE = 'e\x1b]52;c;x\x07\nvil\u202e\u200f\x00\x9b31m|`<b>'


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


def test_a_terminal_gets_colours_but_no_code_of_a_name(tmp_path, monkeypatch):
    path, _ = hostile(tmp_path)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv('NO_COLOR', raising=False)
    monkeypatch.setenv('TERM', 'xterm-256color')
    monkeypatch.setattr(sys, 'stdout', Terminal())
    main(['validate', str(path)])
    text = sys.stdout.getvalue()
    assert '\x1b[1m' in text or '\x1b[31m' in text
    assert '\x1b]52' not in text and '\u202e' not in text and '\x07' not in text


def test_a_stream_that_cannot_say_a_letter_gets_its_escape(etpe, tmp_path, monkeypatch):
    config = config_of()
    config.table_descriptor[0].name = 'ä'
    path = saved(tmp_path, config)
    stream = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
    monkeypatch.setattr(sys, 'stdout', stream)
    assert main(['inspect', str(path)]) == 0
    assert rb'\xe4' in stream.buffer.getvalue()
