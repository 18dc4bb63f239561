"""Opens a native engine with one table `t` in eager mode, for tests of eager code."""

import tensorflow as tf

from estimator_tpu_embedding.native import library, plan_attributes
from estimator_tpu_embedding.native.eager_variable import EagerTableVariable

from .native_run import plan_of


class Opened:
    """An engine of `plan_of(hosts=1)`; a step subtracts the gradients from the rows.

    Use it in a `with` statement, which closes it.
    """

    def __init__(self, plan=None):
        self.plan = plan_of(hosts=1) if plan is None else plan
        self.library = library.load()
        self.handle = self.library.ete_open(**plan_attributes.attributes(self.plan, 2))

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


class Owned(Opened):
    """The same engine with the variable of its only part, which it takes over before each step."""

    def __init__(self, plan=None, initial_value=0.):
        super().__init__(plan)
        self.pending = []  # What `before_read` is to do.
        table, = self.plan.tables
        self.variable = EagerTableVariable(
            initial_value=lambda: tf.fill([table.vocabulary_size, table.dimension], initial_value),
            trainable=True, name='t')
        self.variable.attach(self.handle, 0, self._settle)
        self.take = tf.function(self._take)
        self.take()

    def _settle(self):
        while self.pending:
            self.pending.pop()()

    def detached(self):
        """-1, or 0 if the variable has another value than the memory of the engine."""
        value = tf.raw_ops.ReadVariableOp(resource=self.variable.handle, dtype=tf.float32)
        return int(self.library.ete_detached(engine=self.handle, values=[value]))

    def step(self, ids, gradient=1.):
        """Returns the rows looked up, then subtracts the gradient from them."""
        self.take()
        grouped = self.group(ids)
        found = self.lookup(grouped)
        self.update(grouped, gradient)
        return found.numpy().tolist()

    def _take(self):
        value = tf.raw_ops.ReadVariableOp(resource=self.variable.handle, dtype=tf.float32)
        detached = self.library.ete_detached(engine=self.handle, values=[value])
        tf.cond(detached >= 0, self._take_over, lambda: tf.constant(True))

    def _take_over(self):
        handle = self.variable.handle
        tf.raw_ops.DisableCopyOnRead(resource=handle)
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        view = self.library.ete_view(engine=self.handle, value=value, part=0)
        assigned = tf.raw_ops.AssignVariableOp(resource=handle, value=view)
        with tf.control_dependencies([assigned]):
            self.library.ete_take(engine=self.handle, value=value, part=0)
        return tf.constant(True)
