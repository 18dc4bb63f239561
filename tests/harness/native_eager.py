"""An engine of one table `t` that is opened in eager mode, for tests of what is used there."""

import tensorflow as tf

from estimator_tpu_embedding.native import layout, library

from .native_run import plan_of


class Opened:
    """An engine of `plan_of(hosts=1)`, of which a step subtracts what it is given.

    Use it in a `with` statement, which closes it.
    """

    def __init__(self, plan=None):
        self.plan = plan_of(hosts=1) if plan is None else plan
        self.library = library.load()
        self.handle = self.library.ete_open(**layout.attributes(self.plan, 2))

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.library.ete_close(engine=self.handle)

    def group(self, ids):
        """One id for each sample, as the engine groups them."""
        return self.library.ete_group(
            engine=self.handle, samples=[tf.range(len(ids))], ids=[tf.constant(ids, tf.int64)],
            weights=[])

    def lookup(self, grouped, handles=()):
        """The rows of the ids of a batch, `[2, width]`."""
        found, = self.library.ete_lookup(
            engine=self.handle, grouped=grouped, handles=list(handles), F=1)
        return found

    def update(self, grouped, gradient, handles=()):
        """Subtracts a number from all that the ids of a batch name."""
        return self.library.ete_update(
            engine=self.handle, grouped=[grouped], handles=list(handles), rates=[1.],
            gradients=[tf.fill([2, self.plan.tables[0].dimension], gradient)])
