"""Event files are read as far as they hold, and whatever is wrong with them is a text."""

import math
import os
import struct

import google_crc32c
import tensorflow.compat.v1 as tf
from harness.event_files import NAME, event, record, write
from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.checkpoint import event_files
from estimator_tpu_embedding.checkpoint.sstable import masked
from estimator_tpu_embedding.proto.event_file_pb2 import Event


def values(found, tag='loss'):
    series = found.series[tag]
    return dict(zip(series.steps, series.values))


def test_what_tensorflow_writes_is_read_and_graphs_are_passed_over(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1)
        with tf.summary.FileWriter(str(tmp_path), graph) as writer:
            for step in (3, 5):
                writer.add_summary(tf.Summary(value=[
                    tf.Summary.Value(tag='loss', simple_value=step / 2),
                    tf.Summary.Value(tag='of V2', tensor=tf.make_tensor_proto(step * 2.))]), step)
    found = event_files.read(str(tmp_path))
    assert (found.problems, values(found), values(found, 'of V2')) == (
        [], {3: 1.5, 5: 2.5}, {3: 6., 5: 10.})


def test_every_field_has_tensorflows_number_and_type():
    compared = 0
    for ours, theirs in ((Event, tf.Event), (Event.Summary, tf.Summary),
                         (Event.Value, tf.Summary.Value),
                         (Event.Tensor, type(tf.make_tensor_proto(1.)))):
        for field in ours.DESCRIPTOR.fields:
            other = theirs.DESCRIPTOR.fields_by_name[field.name]
            kinds = {field.type, other.type} - {field.TYPE_ENUM, field.TYPE_INT32}
            assert field.number == other.number and len(kinds) < 2
            compared += 1
    assert compared == 11


def test_a_file_that_ends_anywhere_keeps_the_numbers_before(tmp_path):
    path = write(tmp_path, event(1, loss=2.), event(2, loss=1.))
    content, first = path.read_bytes(), len(record(event(1, loss=2.)))
    for size in range(len(content)):
        path.write_bytes(content[:size])
        found = event_files.read(str(tmp_path))
        assert len(found.series) == (size >= first)
        assert found.problems == ([] if size in (0, first) else [
            f'event file {NAME}: it ends within a record: a job is writing it, or was killed'])


@given(st.data())
def test_no_bytes_raise_an_error(tmp_path_factory, data):
    directory = tmp_path_factory.getbasetemp() / 'hostile'
    path = write(directory, event(1, loss=2.), event(2, loss=1.))
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content)))
    content[at:at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=20))
    path.write_bytes(content)
    found = event_files.read(str(directory))
    assert len(found.problems) <= 1


def test_a_hostile_record_costs_a_line(tmp_path):
    head = struct.pack('<Q', 2**63)
    path = write(tmp_path, event(1, loss=2.), b'\xff' * 9, event(2, **{'x' * 501: 1.}),
                 event(3, loss=1.))
    with path.open('ab') as file:
        file.write(head + struct.pack('<I', masked(google_crc32c.value(head))) + b'...')
    os.mkfifo(tmp_path / f'{NAME}.pipe')
    (tmp_path / f'{NAME}.link').symlink_to('/etc/passwd')
    found = event_files.read(str(tmp_path))
    assert values(found) == {1: 2., 3: 1.}
    assert [one.removeprefix(f'event file {NAME}') for one in found.problems] == [
        ': it ends within a record: a job is writing it, or was killed',
        ': left out a record that is no event (1 time)',
        ': left out a tag beyond 20,000, or of more than 500 characters (1 time)',
        '.link: a link, which is not followed here', '.pipe: a pipe, socket or device']


def test_a_step_that_ran_again_replaces_what_followed(tmp_path):
    write(tmp_path, event(1, loss=3.), event(2, loss=2.), event(3, loss=1.))
    write(tmp_path, event(2, loss=math.inf), name=NAME.replace('1000', '2000'))
    assert values(event_files.read(str(tmp_path))) == {1: 3., 2: math.inf}


def test_a_long_series_keeps_few_points_evenly_and_the_last():
    series = event_files.Series()
    for step in range(10_001):
        series.add(step, float(step))
    assert len(series.steps) <= event_files.MAX_POINTS + 1
    assert (series.count, series.steps[0], series.values[-1]) == (10_001, 0, 10_000.)
    assert {b - a for a, b in zip(series.steps[:-1], series.steps[1:-1])} == {series.stride}
