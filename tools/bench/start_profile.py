"""Splits the start of a training by timing the functions that begin its parts.

Each instant belongs to the function of `PARTS` that began last and has not ended. Looks at stacks
from another thread would not do: Python lets that thread run mostly in calls of TensorFlow's C++.
"""

import contextlib
import functools
import importlib
import threading
import time

PARTS = (
    ("graph, TensorFlow's C++", 'tensorflow.python.framework.ops', '_create_c_op'),
    ('graph, input', 'estimator_tpu_embedding.runner.step_graph', 'draw_input'),
    ('graph, input', 'estimator_tpu_embedding.runner.step_graph', 'feeds_of'),
    ('graph, model', 'job', 'loss_of'),
    ('graph, gradients', 'tensorflow.python.training.optimizer', 'Optimizer.minimize'),
    ('session, variables and other', 'tensorflow.python.training.monitored_session',
     '_MonitoredSession.__init__'),
    ('session, savers', 'tensorflow.python.training.monitored_session', 'Scaffold.finalize'),
    ('session, text of the graph', 'tensorflow.python.training.training_util', 'write_graph'),
    ('session, messages of the graph', 'tensorflow.python.framework.ops', 'Graph.as_graph_def'),
    ('session, first checkpoint', 'tensorflow.python.training.basic_session_run_hooks',
     'CheckpointSaverHook._save'),
    ('first run', 'tensorflow.python.training.monitored_session', '_MonitoredSession.run'))
"""Part, module, and function of the module. Their Python counts, but for the first."""

REST = 'graph, other'


class Profile:
    """Counts the seconds of each part from its entry until `end`.

    The threads of towers take turns, and the others wait. So an instant belongs to the thread that
    began or ended a part last.

    Attributes:
      ended: seconds by part, once it has ended.
    """

    def __init__(self):
        self._seconds = dict.fromkeys([part for part, *_ in PARTS] + [REST], 0.0)
        self._stacks, self._lock, self._wrapped = threading.local(), threading.Lock(), []
        self.ended = None

    def __enter__(self):
        self._part, self._at = REST, time.perf_counter()
        for part, module, path in PARTS:
            self._wrap(part, importlib.import_module(module), path)
        return self

    def __exit__(self, *_):
        for owner, name, function in self._wrapped:
            setattr(owner, name, function)

    def end(self):
        """Ends the last part."""
        self._turn_to(self._part)
        self.ended = dict(self._seconds)

    def _wrap(self, part, owner, path):
        *outer, name = path.split('.')
        owner = functools.reduce(getattr, outer, owner)
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*args, **kwargs):
            with self._within(part):
                return function(*args, **kwargs)

        self._wrapped.append((owner, name, function))
        setattr(owner, name, timed)

    @contextlib.contextmanager
    def _within(self, part):
        before, self._stacks.part = getattr(self._stacks, 'part', REST), part
        self._turn_to(part)
        try:
            yield
        finally:
            self._stacks.part = before
            self._turn_to(before)

    def _turn_to(self, part):
        with self._lock:
            now = time.perf_counter()
            self._seconds[self._part] += now - self._at
            self._part, self._at = part, now
