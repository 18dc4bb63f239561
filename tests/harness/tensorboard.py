"""A TensorBoard in a process of its own, which is asked by HTTP as its pages ask it."""

import contextlib
import subprocess
import sys
import urllib.request

from harness import groups
from harness.waiting import until


@contextlib.contextmanager
def served(logdir):
    """Yields a function that returns what a plugin answers, as bytes."""
    said = logdir.parent / 'tensorboard.txt'
    with said.open('w') as file, groups.running(
            [sys.executable, '-m', 'tensorboard.main', '--logdir', str(logdir), '--port', '0',
             '--load_fast', 'false'], stdout=file, stderr=subprocess.STDOUT):
        until(lambda: '(Press CTRL+C' in said.read_text(), 'TensorBoard')
        address = said.read_text().partition(' at ')[2].split()[0]

        def get(path):
            with urllib.request.urlopen(f'{address}data/plugin/{path}', timeout=60) as answer:
                return answer.read()

        yield get
