"""What ends a script is shown with the frames of the script, and its message last."""

import io
import textwrap

import pytest
from harness.processes import run_etpe, run_python

import estimator_tpu_embedding
from estimator_tpu_embedding.cli import tracebacks


@pytest.fixture
def ended(tmp_path):
    """Runs a script here; gives how the error that ends it is shown, folded unless said else."""
    def run(text, folded=True):
        path = tmp_path / 'job.py'
        path.write_text(textwrap.dedent(text))
        code = compile(path.read_text(), str(path), 'exec')
        with pytest.raises(BaseException) as caught:
            exec(code, {'__name__': '__main__'})
        frames = caught.value.__traceback__
        while frames.tb_frame.f_code.co_filename != str(path):
            frames = frames.tb_next
        to = io.StringIO()
        tracebacks.show(caught.value, frames,
                        tracebacks.Folds(str(path)) if folded else None, to)
        return to.getvalue().replace(str(path), 'job.py')
    return run


def test_frames_of_libraries_are_one_line_between_those_of_the_job(ended):
    text = '''
        import json, numpy as np
        def called(row):
            return json.loads("x")
        np.apply_along_axis(called, 0, [1])
    '''
    lines = [line for line in ended(text).splitlines() if set(line) - set(' ^~')]
    assert lines[3].endswith(' of numpy')  # which needs one frame or two, by its version
    assert [*lines[:3], *lines[4:]] == [
        'Traceback (most recent call last):', '  File "job.py", line 5, in <module>',
        '    np.apply_along_axis(called, 0, [1])', '  File "job.py", line 4, in called',
        '    return json.loads("x")', '  ... 3 frames of python',
        'json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)']
    full = ended(text, folded=False)
    assert '...' not in full and full.count('  File ') > 5


def test_causes_contexts_notes_and_groups_are_kept_and_folded(ended):
    shown = ended('''
        import json
        def read():
            json.loads('')
        try:
            try:
                read()
            except ValueError as error:
                error.add_note('line 7 of the file')
                raise KeyError('k') from error
        except KeyError as error:
            raise ExceptionGroup('both', [error, TypeError('t')])
    ''')
    assert shown.count('... 3 frames of python') == shown.count('line 7 of the file') == 1
    assert 'The above exception was the direct cause' in shown
    assert 'During handling of the above exception' in shown
    assert shown.splitlines()[-2:] == ['    | TypeError: t', '    +' + '-' * 36]


def test_the_frames_that_tensorflow_writes_into_a_message_are_folded_and_there_once(ended):
    text = '''
        import tensorflow.compat.v1 as tf
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32)
            checked = tf.debugging.check_numerics(tf.log(x), 'bad loss')
            session.run(checked, {x: 0.})
    '''
    shown = ended(text)
    message = shown[shown.index('Graph execution error'):]
    # A worker of pytest-xdist begins in a string, pytest itself in a script.
    files = [line.strip() for line in message.splitlines() if 'File "' in line
             and not any(name in line for name in (__file__, '"<string>"', '/bin/pytest"'))]
    assert files == ['File "job.py", line 5, in <module>'] and ' of _pytest' in message
    assert 'Original stack trace' not in message and message.count('bad loss') == 1
    assert message.rstrip().endswith('[[{{node CheckNumerics}}]]')
    full = ended(text, folded=False)
    assert 'Original stack trace' in full and full.count('  File ') > 10


def test_a_long_message_is_never_folded(ended):
    message = '\n'.join(f'[[{{node {n}}}]] File "/site-packages/x.py", line {n}'
                        for n in range(500))
    assert ended(f'raise ValueError({message!r})').endswith(f'ValueError: {message}\n')


@pytest.mark.parametrize('program, file, library', [
    ('/home/me/job.py', '/home/me/input.py', None),
    ('/home/me/job.py', '<string>', None),
    ('/home/me/job.py', 'PURELIB/tensorflow/python/x.py', 'tensorflow'),
    ('/home/me/job.py', 'PURELIB/six.py', 'six'),
    ('/home/me/job.py', 'STDLIB/json/decoder.py', 'python'),
    ('/home/me/job.py', '<frozen importlib._bootstrap>', 'python'),
    ('/home/me/job.ipynb', '/home/me/job.ipynb[code cell 2]', None),
    ('PURELIB/trainer/task.py', 'PURELIB/trainer/model.py', None),
    ('PURELIB/trainer/task.py', 'PURELIB/tensorflow/x.py', 'tensorflow'),
    ('PURELIB/../../../../job.py', 'PURELIB/tensorflow/x.py', 'tensorflow'),
    ('PURELIB/job.py', 'PURELIB/job.py', None),
    ('PURELIB/job.py', 'PURELIB/six.py', 'six'),
    ('/home/me/job.py', 'OURS/runner/training.py', 'estimator_tpu_embedding')])
def test_the_job_is_what_lies_beside_the_program_and_in_no_library(program, file, library):
    import sysconfig
    places = {'PURELIB': sysconfig.get_path('purelib'), 'STDLIB': sysconfig.get_path('stdlib'),
              'OURS': estimator_tpu_embedding.__path__[0]}
    for name, place in places.items():
        program, file = program.replace(name, place), file.replace(name, place)
    assert tracebacks.Folds(program).library_of(file) == library


SCRIPT = '''
import os, signal, sys, tensorflow.compat.v1 as tf
def ask():
    if sys.argv[1] == 'Ctrl-C':
        signal.signal(signal.SIGINT, signal.default_int_handler)  # A background job ignores it.
        os.kill(os.getpid(), signal.SIGINT)
    if sys.argv[1] == 'own hook':
        sys.excepthook = lambda kind, *_: print('mine:', kind.__name__, file=sys.stderr)
    with tf.Graph().as_default():
        tf.reshape(tf.ones([2, 3]), [5])
tf.app.run(lambda _: ask())
'''


@pytest.mark.parametrize('what, flags, status, last', [
    ('error', [], 1, 'ValueError: '), ('error', ['--traceback', 'full'], 1, 'ValueError: '),
    ('own hook', [], 1, 'mine: ValueError'), ('Ctrl-C', [], None, 'KeyboardInterrupt')])
def test_the_error_comes_last_with_the_frames_of_the_script(tmp_path, what, flags, status, last):
    path = tmp_path / 'job.py'
    path.write_text(SCRIPT)
    done = run_etpe('run', *flags, path, what, loaded=True)
    if status is None:
        status = run_python(path, what).returncode
    assert done.returncode == status
    lines = done.stderr.splitlines()
    assert lines[-1].startswith(last), lines
    if what == 'own hook':
        return
    at = lines.index('Traceback (most recent call last):')
    assert lines[at - 1].startswith('[etpe] in all: ')
    files = [line for line in lines[at:] if line.startswith('  File ')]
    if flags:
        assert len(files) > 8 and not any('...' in line for line in lines[at:])
    else:
        assert all(f'"{path}"' in line for line in files) and len(files) == 3
        assert '  ... 1 frame of tensorflow, 2 of absl' in lines[at:]
        assert len(lines) - at < 20
