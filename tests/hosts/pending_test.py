"""An update waits, with all its tensors, until it is made once."""

import types

import numpy as np
import tensorflow as tf
from harness import graphs

from estimator_tpu_embedding.hosts.components import CoreComponents
from estimator_tpu_embedding.hosts.pending import PendingUpdate
from estimator_tpu_embedding.hosts.placement import Placement


def executor():
    plan = graphs.small_plan()
    return types.SimpleNamespace(plan=plan, kinds=[tf.int32, tf.int64],
                                 places=lambda core: ['', ''], placement=Placement(plan.topology))


def lookup(start):
    """Packed ids and a gradient: [start], [start + 1] and [[start, start], [start, start]]."""
    return ([tf.constant([start]), tf.constant([start + 1], tf.int64)],
            {'f': tf.fill([2, 2], float(start))})


def test_what_is_flattened_comes_back_with_its_shape():
    components = CoreComponents(executor())
    packed, values = lookup(3)
    flat = components.flatten(packed, values)
    assert [tensor.dtype for tensor in flat] == components.kinds
    queue = tf.queue.FIFOQueue(1, components.kinds)
    shapes = []

    @tf.function
    def through_queue():
        queue.enqueue(flat)
        found_packed, found = components.unflatten(queue.dequeue())
        shapes.append(found['f'].shape.as_list())
        return found_packed, found

    found_packed, found = through_queue()
    assert shapes == [[2, 2]]
    assert [tensor.numpy().tolist() for tensor in found_packed] == [[3], [4]]
    np.testing.assert_array_equal(found['f'], np.full([2, 2], 3.))


def test_an_update_is_made_once_and_only_when_it_is_asked_for():
    made = []

    def update(facts, packed, gradients):
        made.append((facts[0].numpy(), packed[0][1].numpy().tolist(),
                     gradients[0]['f'].numpy()[0, 0]))
        return tf.constant(True)

    pending = PendingUpdate(executor(), [tf.int64], update)
    assert not pending.waits() and pending.make() == 0 and made == []
    for step in (5, 7):
        packed, gradients = lookup(step)
        pending.put([tf.constant(step, tf.int64)], [packed], [gradients])
        assert pending.waits() and len(made) == (step == 7)
        pending.make()
        assert not pending.waits()
    pending.make()
    assert made == [(5, [6], 5.), (7, [8], 7.)]
