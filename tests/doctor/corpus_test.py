"""The doctor over scripts in the styles of 2016 to 2022, line by line, and over scripts of today.

Comments in the scripts say what is expected: `# expect: E103 tensorflow.contrib.slim` at the end of
a line, with `;` between several and `|` between codes that serve as well. All other lines expect
nothing. `# run: COMMAND` in a program is the command to use, and `# stops: NAME` what stops it
under that command. Without the latter it prints its last line. Both were found by running them.
"""

import collections
import json
import pathlib
import re
import shlex

import pytest
from harness.processes import ROOT, path_with, run_etpe, run_python

from estimator_tpu_embedding.doctor.diagnose import diagnose

HERE = pathlib.Path(__file__).resolve().parent
CORPUS, TODAY = HERE / 'corpus', HERE / 'today'
OLD_AND_WELL = [
    ROOT / 'tools' / 'examples' / 'census_tpu_job.py',
    ROOT / 'tools' / 'examples' / 'census_handwritten_loop.py',
    ROOT / 'tools' / 'examples' / 'census_dlrm_tfrs.py',
    *[ROOT / 'tests' / 'scripts' / name for name in (
        'absl_flags.py', 'canned.py', 'private_modules.py', 'queues_and_keras.py',
        'tf1_language_model.py', 'tf1_mnist_like.py', 'tf1_tpu_job.py', 'tf2_tpu_embedding.py',
        'beside/job.py', 'trainer/task.py')]]
"""Scripts that other tests run to their end under `etpe run`."""
LAST_LINE = 'reached the last line'
_EXPECT = re.compile(r'# expect: (.*)')


def files_of(folder):
    return sorted([*folder.rglob('*.py'), *folder.rglob('*.ipynb')])


def cells(path):
    """The lines of a file, by the number of its cell: 0 stands for a Python file."""
    text = path.read_text()
    if path.suffix == '.py':
        return {0: text.splitlines()}
    code = [''.join(cell['source']) for cell in json.loads(text)['cells']
            if cell['cell_type'] == 'code']
    return {number: one.splitlines() for number, one in enumerate(code, 1)}


def expectations(path):
    """(cell, line): [(codes, the beginning of the subject, or nothing)]."""
    found = {}
    for cell, lines in cells(path).items():
        for number, line in enumerate(lines, 1):
            if (comment := _EXPECT.search(line)) is not None:
                found[cell, number] = [
                    (codes.split('|'), subject)
                    for codes, _, subject in (one.strip().partition(' ')
                                              for one in comment[1].split(';'))]
    return found


def said_of(path, word):
    """What a comment such as `# run: etpe run` says in a program; `None` without it."""
    for lines in cells(path).values():
        for line in lines:
            if line.startswith(f'# {word}: '):
                return line.removeprefix(f'# {word}: ')
    return None


PROGRAMS = [path for path in files_of(CORPUS) if said_of(path, 'run')]


def ids(paths):
    return [str(path.relative_to(HERE)) for path in paths]


@pytest.fixture(scope='module')
def diagnosis():
    return diagnose([str(CORPUS), str(TODAY), *map(str, OLD_AND_WELL)])


@pytest.fixture(scope='module')
def findings(diagnosis):
    """By file, all findings about it."""
    by_path = collections.defaultdict(list)
    for one in diagnosis.findings:
        if one.place is not None:
            by_path[pathlib.Path(one.place.path)].append(one)
    return by_path


@pytest.fixture(scope='module')
def prescriptions(diagnosis):
    return {pathlib.Path(one.path): one for one in diagnosis.prescriptions}


def fits(expected, finding):
    codes, subject = expected
    return finding.code in codes and (
        not subject
        or f'{finding.subject.removeprefix("builtins.")}.'.startswith(f'{subject}.'))


@pytest.mark.parametrize('path', files_of(CORPUS), ids=ids(files_of(CORPUS)))
def test_each_line_has_the_findings_that_it_expects_and_no_others(path, findings):
    wanted, got = expectations(path), collections.defaultdict(list)
    for finding in findings[path]:
        got[finding.place.cell, finding.place.line].append(finding)
    lacking = [(where, one) for where, each in wanted.items() for one in each
               if not any(fits(one, finding) for finding in got[where])]
    surplus = [(where, finding.code, finding.subject, finding.message)
               for where, each in got.items() for finding in each
               if not any(fits(one, finding) for one in wanted.get(where, ()))]
    assert (lacking, surplus) == ([], [])


@pytest.mark.parametrize('path', PROGRAMS, ids=ids(PROGRAMS))
def test_each_program_gets_its_command_and_hears_what_stops_it(path, prescriptions):
    one = prescriptions[path]
    assert one.command == f'{said_of(path, "run")} {path}'
    stops = said_of(path, 'stops')
    first = next(iter(one.stops), None)
    if stops is None:
        assert first is None
    elif stops.startswith('line '):
        assert first.place.line == int(stops.removeprefix('line '))
    else:
        assert f'{first.subject}.'.startswith(f'{stops}.')


@pytest.mark.parametrize('path', [*files_of(TODAY), *OLD_AND_WELL],
                         ids=[path.name for path in [*files_of(TODAY), *OLD_AND_WELL]])
def test_scripts_that_run_today_raise_no_alarm(path, findings, prescriptions):
    assert [(one.code, one.place, one.subject) for one in findings[path]
            if one.code[0] != 'I'] == []
    assert not (path in prescriptions and prescriptions[path].stops)


def run(command, folder):
    """Runs a command that the doctor prescribed."""
    first, *arguments = shlex.split(command)
    if first == 'etpe':
        arguments = ['-m', 'estimator_tpu_embedding', *arguments]
    else:
        assert first in ('python', 'python3')
    return run_python(*arguments, cwd=folder, PYTHONPATH=path_with(ROOT))


RUN = [*PROGRAMS, *(path for path in TODAY.glob('*.py'))]


@pytest.mark.soak
@pytest.mark.parametrize('path', RUN, ids=ids(RUN))
def test_programs_end_under_their_command_as_the_doctor_says(path, prescriptions):
    one = prescriptions[path]
    done = run(one.command, path.parent)
    if not one.stops:
        assert (done.returncode, LAST_LINE in done.stdout) == (0, True)
        return
    first = one.stops[0]
    assert done.returncode == 1 and LAST_LINE not in done.stdout
    if path.suffix == '.py':
        assert f'{path.name}", line {first.place.line}' in done.stderr
    name = 'SyntaxError' if first.code == 'E131' else first.subject.rpartition('.')[2]
    assert name in done.stderr


def test_the_comments_are_read():
    assert len(PROGRAMS) > 25
    assert expectations(CORPUS / 'exploring_2017.ipynb')[2, 1] == [
        (['E103'], 'tensorflow.contrib.eager.enable_eager_execution')]
    assert said_of(CORPUS / 'ranker_py2.py', 'stops') == 'line 10'


@pytest.mark.soak
def test_the_output_in_the_documentation_is_that_of_a_run():
    script = 'tests/doctor/corpus/conflict.py'
    text = (ROOT / 'estimator_tpu_embedding' / 'docs' / 'doctor.md').read_text()
    shown = next(block for block in re.findall(r'^```text\n(.*?)^```$', text, re.M | re.S)
                 if block.startswith(script))
    done = run_etpe('doctor', script, cwd=ROOT)
    assert done.returncode == 1 and shown in done.stdout
