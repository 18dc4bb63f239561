"""Paths are TensorFlow's, and graphs that are built or read are those that it understands."""

import numpy as np
import pytest
import tensorflow as tf
from harness.tf2_tables import module
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.bundle_writer import BundleWriter
from estimator_tpu_embedding.checkpoint.object_graph import (
    GRAPH_KEY,
    Graph,
    GraphBuilder,
    Place,
    escaped,
    unescaped,
)

ATTRIBUTES = ['user', 'a/b', 'a.b', 'a.Sb', '.S', '..', '/', './', '/.', 'S', 'größe', 'a..S/']


@pytest.mark.parametrize('attribute', ATTRIBUTES)
def test_attributes_are_escaped_as_tensorflow_does(attribute, tmp_path):
    path = tf.train.Checkpoint(**{attribute: tf.Variable(1.)}).write(str(tmp_path / 'm'))
    key = Place(escaped(attribute)).key
    assert key in Bundle.open(path).tensors
    assert unescaped(escaped(attribute)) == attribute


@given(parts=st.lists(st.text(min_size=1), min_size=1), slot=st.text(min_size=1))
@settings(deadline=None, database=None)
def test_a_place_is_what_its_text_and_its_key_say(parts, slot):
    path = '/'.join(map(escaped, parts))
    assert [unescaped(part) for part in path.split('/')] == parts
    for place in Place(path), Place(path, 'net/optimizer', slot), Place(path, '', slot):
        assert Place.of(str(place)) == Place.of_key(place.key) == place


@pytest.mark.parametrize('key', [GRAPH_KEY, 'w', 'w/.ATTRIBUTES/OBJECT_CONFIG_JSON'])
def test_other_tensors_are_at_no_place(key):
    assert Place.of_key(key) is None


def written(path, places, graph):
    """A checkpoint with a number at each place."""
    with BundleWriter(str(path)) as out:
        for number, place in enumerate(places):
            kind, code = (9, np.int64) if place.path.endswith('iter') else (1, np.float32)
            out.rows(place.key, kind, ())[0].append(code(number).tobytes())
        out.text(GRAPH_KEY, graph.content())
        out.finish()
    return str(path)


def test_tensorflow_restores_by_the_graph_through_every_path(tmp_path):
    places = [Place('net/a.Sb/w'), Place('b'), Place('net/a.Sb/w', 'own/optimizer', 'momentum'),
              Place('own/optimizer/iter')]
    graph = GraphBuilder()
    for place in places:
        graph.add(place, str(place))
    graph.alias('other/deep/x..y', 'net/a.Sb')
    path = written(tmp_path / 'm', places, graph)
    for make in (lambda inner: {'net': module(**{'a/b': inner})},
                 lambda inner: {'other': module(deep=module(**{'x.y': inner}))}):
        inner, optimizer = module(w=tf.Variable(9.)), tf.keras.optimizers.legacy.SGD(
            .1, momentum=.5)
        optimizer.iterations  # Else nobody asks for it.
        b = tf.Variable(9.)
        tf.train.Checkpoint(b=b, own=module(optimizer=optimizer), **make(inner)).read(path)
        optimizer._create_all_weights([inner.w])
        assert [float(one) for one in (inner.w, b, optimizer.get_slot(inner.w, 'momentum'),
                                       optimizer.iterations)] == [0, 1, 2, 3]


def test_a_real_graph_is_read(tmp_path):
    path = tf.train.Checkpoint(e={'t': {'parameters': tf.Variable(1.)}}).write(str(tmp_path / 'm'))
    graph = Bundle.open(path).read_text(GRAPH_KEY)
    assert Graph(graph).keys_below('e') == {'t': {'parameters': Place('e/t/parameters').key}}


@given(content=st.binary(max_size=60))
@settings(deadline=None, database=None)
def test_bytes_that_are_no_graph_do_no_harm(content):
    graph = Graph(content)
    for path in '', 'a/b':
        assert isinstance(graph.keys_below(path), dict)
        assert graph.key_of(Place(path, 'a', 'm')) is None
