"""The commands as real processes: what a pipe, a shell and the importer see."""

import os
import sys

import pytest
from harness import groups
from harness.commands import CONFIGS, SEVERAL
from harness.processes import ROOT, run_etpe, run_python
from harness.profiles import profile_of, subject
from harness.source import PACKAGE

from estimator_tpu_embedding.checkpoint import profile_files
from estimator_tpu_embedding.cli.main import COMMANDS

SEVERAL = CONFIGS / SEVERAL
IMPORTED = '''
import runpy, sys
sys.argv[0] = "etpe"
try:
    runpy.run_module("estimator_tpu_embedding", run_name="__main__")
except SystemExit as error:
    print(error.code)
print(*sorted(sys.modules))
'''


def imported_by(*arguments):
    """The modules that are imported when a command has run, and its exit status."""
    done = run_python('-c', IMPORTED, *arguments)
    assert done.returncode == 0
    *_, status, modules = done.stdout.splitlines()
    return int(status), set(modules.split())


@pytest.mark.parametrize('arguments', [
    ['inspect', SEVERAL], ['validate', SEVERAL], ['diff', SEVERAL, SEVERAL],
    ['doctor', PACKAGE / 'version.py'], ['size', SEVERAL], ['plan', SEVERAL], ['explain'],
    ['docs', 'kernels'], ['migrate', 'config', SEVERAL, '--to', 'tf2']])
def test_no_command_that_reads_protos_imports_tensorflow_or_numpy(arguments):
    status, modules = imported_by(*arguments)
    assert status == 0
    assert not modules & {'tensorflow', 'numpy', 'rich', 'keras', 'tf_keras'}


def test_reading_profiles_imports_neither(tmp_path):
    profile_files.write(str(tmp_path), profile_of(subject(), [[1, 2]]))
    status, modules = imported_by('plan', SEVERAL, '--stats', tmp_path)
    assert (status, modules & {'tensorflow', 'numpy'}) == (0, set())
    assert 'estimator_tpu_embedding.core.table_profile' in modules


def test_a_command_imports_its_own_module_only():
    prefix = 'estimator_tpu_embedding.cli.'
    own = {f'{prefix}etpe_{name}' for name in COMMANDS}
    assert not imported_by('--version')[1] & own
    of_run = imported_by('run', '/nonexistent.py')[1]
    assert of_run & own == {prefix + 'etpe_run'}
    assert imported_by('inspect', SEVERAL)[1] & own == {prefix + 'etpe_inspect'}
    assert not of_run & {'google.protobuf', prefix + 'report'}


def closed_early(*arguments):
    """What a command says on standard error whose reader has gone, and its exit status."""
    reader, writer = os.pipe()
    os.close(reader)
    done = groups.run([sys.executable, '-m', 'estimator_tpu_embedding', *arguments], stdout=writer)
    os.close(writer)
    return done.stderr, done.returncode


@pytest.mark.parametrize('arguments', [
    ['explain'], ['explain', '--format', 'json'], ['inspect', str(SEVERAL)],
    ['plan', str(SEVERAL), '--hosts', '4096', '--cores', '1', '--format', 'json']])
def test_a_reader_that_goes_away_causes_no_traceback(arguments):
    assert closed_early(*arguments) == ('', 1 if 'plan' in arguments else 0)


def test_a_full_disk_is_status_2():
    if not os.path.exists('/dev/full'):
        pytest.skip('this system has no /dev/full')
    with open('/dev/full', 'w') as full:
        done = groups.run([sys.executable, '-m', 'estimator_tpu_embedding', 'explain'], stdout=full)
    assert (done.returncode, done.stderr) == (
        2, 'etpe explain: cannot write the report: No space left on device\n')


@pytest.mark.parametrize('redirection, arguments, status, said', [
    ('>&-', ('explain',), 2, 'etpe explain: cannot write the report: it is closed\n'),
    ('>&-', ('inspect', SEVERAL, '--format', 'json'), 2, 'etpe inspect: cannot write'),
    ('2>&-', ('explain',), 0, ''), ('2>&-', ('inspect', '/nonexistent'), 2, ''),
    ('2>&-', ('inspekt',), 2, ''), ('2>&-', ('run', '/nonexistent.py'), 2, ''),
    ('>&- 2>&-', ('explain',), 2, ''), ('>&- 2>&- <&-', ('inspect', '-'), 2, '')])
def test_streams_that_are_closed_cause_no_traceback(redirection, arguments, status, said):
    done = groups.run(
        ['sh', '-c', f'exec "$0" -m estimator_tpu_embedding "$@" {redirection}', sys.executable,
         *map(str, arguments)])
    assert done.returncode == status
    assert done.stderr.startswith(said) and 'Traceback' not in done.stderr + done.stdout
    assert said or not done.stderr


def test_the_inspection_runs_from_a_checkout():
    script = ROOT / 'tools' / 'inspect_tpu_embedding_config.py'
    done = run_python(script, SEVERAL, cwd='/')
    assert done.returncode == 0
    assert done.stdout == run_etpe('inspect', SEVERAL).stdout


def test_help_lists_every_command_with_a_line(capsys):
    from estimator_tpu_embedding.cli.main import main
    with pytest.raises(SystemExit):
        main(['--help'])
    text = capsys.readouterr().out
    assert all(f'\n    {name}' in text for name in COMMANDS if ' ' not in name)
    for name in COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main([*name.split(), *(['ls'] if name == 'worker' else []), '--help'])
        assert caught.value.code == 0
        text = capsys.readouterr().out
        assert name == 'run' or '--format' in text or all(
            f'\n    {one.partition(" ")[2]}' in text for one in COMMANDS if f'{name} ' in one)
