"""README and the topics of `etpe docs`: links, files, flags, commands and programs in them hold."""

import argparse
import ast
import inspect
import pathlib
import re
import shlex

import pytest
from harness.processes import ROOT, run_python
from harness.source import parts

import estimator_tpu_embedding
from estimator_tpu_embedding.cli import codes, main
from estimator_tpu_embedding.cli.etpe_docs import topics

README = ROOT / 'README.md'
PACKAGE = ROOT / 'estimator_tpu_embedding'
ARCHITECTURE = PACKAGE / 'ARCHITECTURE.md'
TOPICS = sorted((PACKAGE / 'docs').glob('*.md'))
GUIDES = [README, *TOPICS]
"""What is written for users; commands, flags and programs in them are checked."""
TEXTS = [*GUIDES, *PACKAGE.glob('*.md'), ROOT / 'protos' / 'README.md',
         *sorted((ROOT / 'tests').glob('*/README.md'))]
TEXT = {path.relative_to(ROOT).as_posix(): path.read_text() for path in TEXTS}
GUIDE = {name: text for name, text in TEXT.items() if ROOT / name in GUIDES}

BLOCK = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SPAN = re.compile(r'`([^`]+)`')
FILE = re.compile(r'(?<![\w/.])((?:tools|tests|protos|estimator_tpu_embedding)/[\w/.*-]*[\w*/]|'
                  r'\.ci/[\w.]*\w)')


FLAG = re.compile(r'(?<![\w-])--[a-z][\w-]*')


def blocks(text, language):
    """The fenced blocks of a language in a text, `''` for what is typed into a shell."""
    return [block for kind, block in BLOCK.findall(text) if kind == language]


def spans(text):
    """What stands between backticks, one line each, outside of the blocks."""
    return [' '.join(span.split()) for span in SPAN.findall(BLOCK.sub('', text))]


def anchors(text):
    """The anchors of a text's headings, as repository pages make them."""
    return {re.sub(r'[^\w -]', '', title.lower()).replace(' ', '-')
            for title in re.findall(r'^#+ (.*)$', text, re.MULTILINE)}


def test_documents_of_the_structure_name_every_part_and_only_files_that_exist():
    text = ARCHITECTURE.read_text()
    layers = re.findall(r'^\| \d \| (.*?) \|', text, re.MULTILINE)
    named = {span.rstrip('/') for layer in layers for span in spans(layer)}
    assert named == parts() - {'__init__', '__main__', 'version'}
    for named in (text, (PACKAGE / 'docs' / 'developers.md').read_text()):
        assert [file for file in re.findall(r'`((?:\w+/)+\w+\.\w+)', named)
                if not any((top / file).is_file() for top in (PACKAGE, ROOT))] == []


def test_the_readme_links_every_topic():
    linked = dict(re.findall(r'\[([\w-]+)\]\(([\w/]+)\.md\)', README.read_text()))
    assert {topic: pathlib.PurePath(target).name for topic, target in linked.items()} == {
        topic: file.name.removesuffix('.md') for topic, file in topics().items()}


def test_topics_are_installed_with_the_package():
    installed = {file.name: file.read_text('utf-8') for file in topics().values()}
    assert installed == {path.name: path.read_text()
                         for path in (*TOPICS, *PACKAGE.glob('*.md'))}


@pytest.mark.parametrize('name', TEXT)
def test_links_lead_somewhere(name):
    wrong = []
    for target in re.findall(r'\]\(([^)]+)\)', BLOCK.sub('', TEXT[name])):
        if not re.match('https?:', target):
            path, _, anchor = target.partition('#')
            file = (ROOT / name).parent / path if path else ROOT / name
            if not file.is_file() or anchor and anchor not in anchors(file.read_text()):
                wrong.append(target)
    assert not wrong


@pytest.mark.parametrize('name', TEXT)
def test_files_that_are_named_exist(name):
    assert [file for file in FILE.findall(TEXT[name]) if not any(ROOT.glob(file))] == []


def test_tests_that_are_said_to_show_a_defect_exist():
    wrong, of_file = [], ''
    for file, words in re.findall(r'`(\w+_test\.py)?(?: ?-k "?([^`"]*)"?)?`',
                                  TEXT['tests/faults/README.md']):
        of_file = file or of_file
        text = ''.join(path.read_text().lower() for path in (ROOT / 'tests').rglob(of_file))
        if not text or any(word not in text
                           for word in re.findall(r'\w+', words) if word not in ('and', 'or')):
            wrong.append((of_file, words))
    assert not wrong


def flags_of(parser):
    """The flags of a parser and of those below it."""
    flags = set()
    for action in parser._actions:
        flags.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            flags.update(*map(flags_of, action.choices.values()))
    return flags


@pytest.fixture(scope='module')
def flags():
    """The flags of each command of `etpe`."""
    commands = (name for name in main.COMMANDS if ' ' not in name)
    return {name: flags_of(main.parser_of(name)) for name in commands}


@pytest.mark.parametrize('name', GUIDE)
def test_flags_that_are_named_exist(name, flags):
    wrong = []
    for span in spans(GUIDE[name]):
        command, _, rest = span.partition(' ')
        tools = [ROOT / file for file in FILE.findall(span)]
        if tools:
            known = {flag for tool in tools if tool.is_file()
                     for flag in FLAG.findall(tool.read_text())}
        elif command == 'etpe':
            known = flags.get(rest.partition(' ')[0], set())
        else:
            known = set().union(*flags.values())
        wrong += [span for flag in FLAG.findall(span) if flag not in known]
    assert not wrong


def commands():
    """Each line of a guide that a reader types and that begins with `etpe`."""
    return [pytest.param(line, id=f'{pathlib.Path(name).stem}: {line.partition("  ")[0]}')
            for name, text in GUIDE.items() for block in blocks(text, '')
            for line in block.splitlines() if line.startswith('etpe ')]


@pytest.mark.parametrize('line', commands())
def test_commands_can_be_typed(line, monkeypatch):
    """They are parsed by the command itself, which then does nothing."""
    parse = argparse.ArgumentParser.parse_known_args

    def parse_only(self, *arguments):
        parsed, unknown = parse(self, *arguments)
        parsed.command = lambda _: 0
        return parsed, unknown

    monkeypatch.setattr(argparse.ArgumentParser, 'parse_known_args', parse_only)
    monkeypatch.chdir(ROOT)  # Some commands look for their files at once.
    assert main.main(shlex.split(line, comments=True)[1:]) == 0


def test_commands_that_are_named_exist():
    named = {span.split()[1] for text in GUIDE.values() for span in spans(text)
             if span.startswith('etpe ')}
    assert named <= set(main.COMMANDS)


def test_codes_that_are_named_exist():
    named = {code for text in GUIDE.values() for code in re.findall(r'\b[EWI]\d{3}\b', text)}
    assert named and named <= set(codes.ENTRIES)


def test_arguments_that_are_named_exist():
    """For example of `RunConfig(kernels=...)`."""
    seen, wrong = set(), []
    for span in {span for text in GUIDE.values() for span in spans(text)}:
        name, _, rest = span.partition('(')
        if name in estimator_tpu_embedding.__all__ and rest:
            taken = inspect.signature(getattr(estimator_tpu_embedding, name)).parameters
            seen.add(name)
            wrong += [span for keyword in ast.parse(span, mode='eval').body.keywords
                      if keyword.arg not in taken]
    assert {'install', 'RunConfig', 'CheckpointOptions'} <= seen and not wrong


PROGRAMS = [block for text in GUIDE.values() for block in blocks(text, 'python')]
INSTALLING = [block for block in PROGRAMS if 'install(' in block]
OF_TF2 = [block for block in PROGRAMS if 'TPUStrategy' in block]


@pytest.mark.soak
@pytest.mark.parametrize('script', OF_TF2)
def test_programs_that_change_tensorflow_run(script, tmp_path):
    """In one process: the lines that a script of TF2 is to have at its top, and that script."""
    (installing,) = INSTALLING
    path = tmp_path / 'script.py'
    # TensorFlow may take a minute to end the iterator, as the threads that tune it sleep so long.
    path.write_text(f'{installing}{script}import os, sys\nsys.stdout.flush()\nos._exit(0)\n')
    done = run_python(path, cwd=tmp_path)
    assert done.returncode == 0
    first, last = map(float, done.stdout.split())
    assert last < first
    assert len(list((tmp_path / 'model').glob('*-1.index'))) == 1


@pytest.mark.parametrize(
    'program', [block for block in PROGRAMS if block not in INSTALLING + OF_TF2])
def test_programs_run(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(program, 'program of the documentation', 'exec'), {})
