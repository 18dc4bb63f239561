"""Splits the start of a training by looks at the stacks of its threads, every few milliseconds.

Python's own profiler makes short calls look long; a look costs the same wherever the program is.
Each look counts for the time since the look before. It belongs to the first of `PARTS` that has
one of the functions of the stack.
"""

import os
import sys
import threading
import time

EVERY = .002
"""Seconds between two looks; Python's switches between threads make them about 7 ms."""

PARTS = (
    ('first run', ('monitored_session.run',)),
    ('session, text of the graph', ('graph_io.write_graph',)),
    ('session, first checkpoint', ('basic_session_run_hooks._save',)),
    ('session, graph for events', ('training_hooks.after_create_session',)),
    ('session, savers and collections', ('monitored_session.finalize',)),
    ('session, other', ('monitored_session.create_session',)),
    ("graph, TensorFlow's C++", ('ops._create_c_op',)),
    ('graph, gradients in Python', ('gradients_util._GradientsHelper',)),
    ('graph, model_fn in Python', ('job.model_fn',)),
    ('graph, input in Python', ('input_graph.draw_input', 'input_graph.feeds_of')),
)
REST = 'graph, rest in Python'


class Profile:
    """Looks at all threads until it is left."""

    def __init__(self):
        self._looks, self._ended = [], threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def seconds(self, began, ended):
        """Returns the seconds of each part between two times of `time.perf_counter`."""
        found = dict.fromkeys([name for name, _ in PARTS] + [REST], 0.0)
        before = began
        for at, part in self._looks:
            if began < at <= ended:
                found[part] += at - before
                before = at
        return found

    def _run(self):
        main = threading.main_thread().ident
        while not self._ended.wait(EVERY):
            frames = sys._current_frames()
            stacks = {thread: _names(frame) for thread, frame in frames.items()}
            self._looks.append((time.perf_counter(), _part_of(_working(stacks, main))))


def _names(frame):
    """Returns the functions of a stack, each as `module.function`."""
    found = set()
    while frame is not None:
        code = frame.f_code
        file = os.path.basename(code.co_filename).removesuffix('.py')
        found.add(f'{file}.{code.co_name}')
        frame = frame.f_back
    return found


def _working(stacks, main):
    """Returns the stack of the tower that builds, if one does, or of the main thread."""
    towers = [names for names in stacks.values()
              if 'towers._run' in names and 'threading.wait' not in names]
    return towers[0] if towers else stacks[main]


def _part_of(names):
    return next((part for part, functions in PARTS if not names.isdisjoint(functions)), REST)
