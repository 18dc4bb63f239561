"""Runs the fast part of the tests with every Python and the oldest TensorFlow that are supported.

    nox -f tools/noxfile.py [-s tests-3.12 | -s "oldest(2.16)" | -s quickstart | -s site]

`tests` has the newest TensorFlow, `oldest` Python 3.11. Everything that the package borrows from
TensorFlow is used in them. `quickstart` runs `tools/quickstart.py`, without and with `--cluster`.
`site` builds the documents as a site.
A Python is looked for where pyenv keeps its versions, then in `PATH`. One that is not there is
skipped, or an error if CI is set.
"""

import os
import pathlib
import re
import tempfile

import nox

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHONS = re.findall(r':: (3\.\d+)$', (ROOT / 'setup.cfg').read_text(), re.MULTILINE)
TESTS = ('core', 'proto/codec_test.py', 'proto/reading_test.py', 'proto/runtime_test.py', 'ops',
         'native', 'columns', 'legacy_test.py', 'conformance/backend_test.py', 'hosts', 'compat',
         'estimator', 'midlevel', 'runner/kernels_test.py', 'runner/topology_test.py',
         'runner/towers_test.py', 'cli/run_test.py', 'cli/run_tf2_test.py')
_pyenv = pathlib.Path(os.environ.get('PYENV_ROOT') or '~/.pyenv').expanduser()
# A shim of pyenv is found, but does not run unless its version is selected.
os.environ['PATH'] = os.pathsep.join(
    [*map(str, _pyenv.glob('versions/3.*/bin')), os.environ['PATH']])
_folder = tempfile.TemporaryDirectory()  # Environments take gigabytes: none is kept.
nox.options.envdir = _folder.name


def run_tests(session: nox.Session, *packages: str) -> None:
    """Installs this checkout and some packages, and runs `TESTS` elsewhere."""
    session.install(f'{ROOT}[cpu,test]', *packages)
    session.chdir(session.create_tmp())
    session.run(
        'pytest', '-q', '-c', f'{ROOT}/setup.cfg', f'--rootdir={ROOT}', '-p', 'no:cacheprovider',
        '-m', 'not soak', '-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder',
        *(f'{ROOT}/tests/{name}' for name in TESTS), env={'TF_CPP_MIN_LOG_LEVEL': '2'})


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """With the newest TensorFlow."""
    run_tests(session)


@nox.session(python=PYTHONS[0])
@nox.parametrize('version', ['2.16'], ids=['2.16'])
def oldest(session: nox.Session, version: str) -> None:
    """With an older TensorFlow. 2.20 itself does not work with protobuf 7, which pip would take."""
    run_tests(session, 'protobuf<7', f'tensorflow=={version}.*', f'tf-keras=={version}.*')


@nox.session(python=PYTHONS[1])
def quickstart(session: nox.Session) -> None:
    """The quickstart on another Python than that of the gate."""
    for options in ([], ['--cluster']):
        session.run('python', f'{ROOT}/tools/quickstart.py', '--environment',
                    f'.venv-{session.python}', *options)


@nox.session(python=PYTHONS[0])
def site(session: nox.Session) -> None:
    """The documents as a site, in `build/site`; a link that leads nowhere is an error."""
    session.install(f'{ROOT}[docs]')
    session.run('mkdocs', 'build', '--strict', '-f', f'{ROOT}/tools/docs/mkdocs.yml')
