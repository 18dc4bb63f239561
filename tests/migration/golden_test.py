"""Checkpoints of TensorFlow 2.15 itself are migrated, and it has loaded what they become."""

import hashlib
import json
import pathlib

import numpy as np
import pytest
from harness import migrated_checkpoints as migrated
from harness import tf1_tables
from harness.parts import soak_except
from harness.processes import ROOT

from estimator_tpu_embedding.checkpoint.bundle import Bundle
from estimator_tpu_embedding.checkpoint.object_graph import GRAPH_KEY
from estimator_tpu_embedding.proto.checkpoint_format_pb2 import ObjectGraph

GOLDEN = ROOT / 'tests' / 'golden' / 'checkpoints'
READ = json.loads((GOLDEN / 'read.json').read_text())
NAMES = [f'{strategy}_{hosts}' for strategy in ('div', 'mod') for hosts in tf1_tables.HOSTS]
LOST = [f'{table}/{suffix}' for table, own in tf1_tables.LOST.items() for suffix in own]


def migrate(name, folder):
    return migrated.migrate(
        GOLDEN / 'tf1' / name, folder, 'tf2', '--drop-slots', '--assume', name.replace('_', ':'),
        lines=tf1_tables.LINES)


@pytest.mark.parametrize('name', soak_except(NAMES, 2, 5))
def test_the_result_has_the_bytes_that_the_class_of_tensorflow_2_15_has_loaded(name, tmp_path):
    path = migrate(name, tmp_path / 'there')
    assert {suffix: hashlib.sha256(pathlib.Path(f'{path}.{suffix}').read_bytes()).hexdigest()
            for suffix in READ['sha256']} == READ['sha256']


def test_what_tensorflow_2_15_has_found_is_what_its_job_had():
    assert {**READ['values']} == {
        **{f'{table}/{name}': value.tolist() for table, own in {
            **tf1_tables.rows_of_tf2(), **{table: {'parameters': tf1_tables.value_of(
                table, range(tf1_tables.ROWS[table]), tf1_tables.width_of(table))}
                for table in tf1_tables.LOST}}.items() for name, value in own.items()},
        **{f'{name}{end}': np.reshape(
            tf1_tables.value_of(name + suffix, range(rows), 1), [-1, 1][:rows]).tolist()
           for name, rows in tf1_tables.DENSE.items()
           for end, suffix in (('', ''), ('/m', '/Adam'), ('/v', '/Adam_1'))},
        'step': tf1_tables.STEP}


@pytest.mark.parametrize('name', soak_except(NAMES, 7))
def test_it_comes_back_bit_for_bit(name, tmp_path):
    path = migrate(name, tmp_path / 'there')
    back = migrated.migrate(path, tmp_path / 'back', 'tf1', '--order', name.replace('_', ':'),
                            lines=tf1_tables.LINES_BACK)
    source = GOLDEN / 'tf1' / name / f'model.ckpt-{tf1_tables.STEP}'
    assert migrated.bytes_of(back) == migrated.bytes_of(source, LOST)
    pieces, were = ({tensor: [(piece.first_row, piece.rows) for piece in one.pieces]
                     for tensor, one in Bundle.open(str(path)).tensors.items()
                     if tensor not in LOST} for path in (back, source))
    assert pieces == were


def test_the_config_beside_a_checkpoint_names_its_tables_and_their_order(tmp_path):
    dense = 're (dense/.*) -> model/\\1'
    path = migrated.migrate(GOLDEN / 'tf1' / 'div_3', tmp_path / 'div', 'tf2', '--drop-slots',
                            lines=dense)
    assert migrated.bytes_of(path) == migrated.bytes_of(migrate('div_3', tmp_path / 'all'))
    errors = migrated.migrate(GOLDEN / 'tf1' / 'mod_2', tmp_path / 'mod', 'tf2', '--drop-slots',
                              lines=dense, status=2)
    assert 'E652' in errors and 'says mod on 2 hosts' in errors and '--assume mod:2' in errors


def test_what_the_class_of_tensorflow_2_15_has_saved_becomes_a_checkpoint_of_tf1(tmp_path):
    back = migrated.migrate(
        GOLDEN / 'tf2' / 'ckpt-1', tmp_path / 'back', 'tf1', '--order', 'mod:3',
        lines=f'{tf1_tables.LINES_BACK}\npower beta1_power 0.9')
    wanted = migrated.write_tf1(tmp_path, tf1_tables.tensors('mod', 3))
    dense = [name for name in migrated.bytes_of(wanted)
             if name.startswith(('dense/', 'global_step', 'beta'))]  # It has begun anew there.
    assert migrated.bytes_of(back, dense) == migrated.bytes_of(wanted, dense)
    found = migrated.bytes_of(back)
    assert found['global_step'] == ('int64', (), np.int64(0).tobytes())
    assert found['beta1_power'] == ('float32', (), np.float32(.9).tobytes())
    assert found.keys() == {*migrated.bytes_of(wanted)} - {'beta2_power'}


def graph_of(path):
    return ObjectGraph.FromString(Bundle.open(str(path)).read_text(GRAPH_KEY))


def described(path):
    """(keys, slots, callbacks) of the graph of a checkpoint, by all paths that lead to them."""
    graph = graph_of(path)
    paths, keys = {0: {''}}, {}
    waiting = [0]
    while waiting:
        number = waiting.pop()
        for child in graph.nodes[number].children:
            new = {f'{own}/{child.local_name}' for own in paths[number]}
            if not new <= paths.setdefault(child.node_id, set()):
                paths[child.node_id] |= new
                waiting.append(child.node_id)
    for number, found in paths.items():
        for attribute in graph.nodes[number].attributes:
            keys |= {one: attribute.checkpoint_key for one in found}
    slots = {(one, slot.slot_name): graph.nodes[slot.slot_variable_node_id].attributes[
        0].checkpoint_key for node in graph.nodes for slot in node.slot_variables
        for one in paths[slot.original_variable_node_id]}
    savers = {(one, node.registered_saver.name, node.registered_saver.object_name)
              for number, node in enumerate(graph.nodes) if node.HasField('registered_saver')
              for one in paths[number]}
    return keys, slots, savers


def test_the_graph_of_objects_is_that_of_tensorflow_2_15(tmp_path):
    """Only the rates of the optimizer are lacking: a checkpoint of TF1 does not have them."""
    source = migrated.write_tf1(tmp_path, tf1_tables.tensors())
    path = migrated.migrate(source, tmp_path / 'there', 'tf2', '--assume', 'div',
                            lines=f'{migrated.TABLES}\n{migrated.DENSE}\ndrop re beta._power')
    (keys, slots, savers), (their_keys, their_slots, their_savers) = map(
        described, (path, GOLDEN / 'tf2' / 'ckpt-1'))
    rates = {f'/optimizer/{name}' for name in ('beta_1', 'beta_2', 'decay', 'learning_rate')}
    assert keys == {name: key for name, key in their_keys.items() if name not in rates}
    assert slots == their_slots and len(slots) == 4
    assert savers == their_savers == {
        ('/embedding', 'tf.TPUEmbeddingCallback', 'embedding')}
    assert Bundle.open(path).tensors.keys() == {
        name for name in Bundle.open(str(GOLDEN / 'tf2' / 'ckpt-1')).tensors
        if not name.startswith('optimizer/') or name.startswith('optimizer/iter/')}
