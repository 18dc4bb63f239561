"""The features of a core are read and refused together as each is alone, by one condition."""


import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.ops import checks
from estimator_tpu_embedding.ops.ids import CoreIds, IdReader

FEATURES = [
    IdReader(name=name, num_samples=2, combiner='mean', **{'vocabulary_size': 10, **more})
    for name, more in (  # The first two have one shape, and so one comparison.
        ('dense', {}), ('int32', {'vocabulary_size': 12}), ('matrix', {}), ('sparse', {}),
        ('ragged', {}),
        ('weighted', {}), ('words', {'has_missing': True}), ('sequence', {'sequence_length': 2}),
        ('wrapped', {'policy': 'mod'}), ('dropped', {'policy': 'drop'}))]
PLACES = [[0, 0], [0, 1], [1, 0]]  # Two ids of sample 0, and one of sample 1.
LATER = [[0, 0], [0, 1], [2, 0]]  # Sample 2 is none of the two.


def sparse(values, places=PLACES, samples=2, dtype=np.int64):
    return tf.SparseTensorValue(np.reshape(places, [-1, 2]), np.array(values, dtype), [samples, 2])


def weights(values, places=PLACES):
    return sparse(values, places, dtype=np.float32)


def rows(*splits):
    return tf.ragged.constant_value([list(range(first, last)) for first, last in zip(
        splits, splits[1:])], dtype=np.int64, row_splits_dtype=np.int64)


GOOD = {
    'dense': np.array([0, 9]), 'int32': np.array([11, 0], np.int32),
    'matrix': np.array([[0, 9], [5, 5]]), 'sparse': sparse([1, 2, 3]), 'ragged': rows(0, 2, 3),
    'weighted': sparse([4, 5, 6]), 'weights': weights([1, 2, 3]), 'words': sparse([-1, 8, -1]),
    'sequence': sparse([1, 2, 3]), 'wrapped': np.array([0, 1]), 'dropped': sparse([7, 8, 9])}
READ = {  # Samples, ids and lengths.
    'dense': ([0, 1], [0, 9], []), 'int32': ([0, 1], [11, 0], []),
    'matrix': ([0, 1, 1], [9, 5, 5], []), 'sparse': ([0, 0, 1], [1, 2, 3], []),
    'ragged': ([0, 0, 1], [0, 1, 2], []), 'weighted': ([0, 0, 1], [4, 5, 6], []),
    'words': ([0], [8], []), 'sequence': ([0, 1, 2], [1, 2, 3], [2, 1]),
    'wrapped': ([0, 1], [0, 1], []), 'dropped': ([0, 0, 1], [7, 8, 9], [])}


def fed_later(value):
    """A placeholder of unknown sizes, but for the samples of vectors, which datasets know."""
    if isinstance(value, tf.SparseTensorValue):
        return tf.SparseTensor(*[tf.placeholder(part.dtype, shape) for part, shape in zip(
            map(np.asarray, value), ([None, 2], [None], [2]))])
    if isinstance(value, tf.ragged.RaggedTensorValue):
        return tf.ragged.placeholder(value.dtype, 1)
    return tf.placeholder(value.dtype, [2] if value.ndim == 1 else [None, 2])


def given_of(fed):
    return {feature.name: (fed[feature.name],
                           fed['weights'] if feature.name == 'weighted' else None)
            for feature in FEATURES}


class Cores:
    """Two cores whose features are fed."""

    def __init__(self):
        with tf.Graph().as_default() as self.graph:
            reader = CoreIds(FEATURES)
            self.fed = {core: {name: fed_later(value) for name, value in GOOD.items()}
                        for core in (6, 7)}
            self.read = {core: reader.read(given_of(fed), core) for core, fed in self.fed.items()}
            self.everything = {core: {name: {
                'samples': one.batch.samples, 'ids': one.batch.ids,
                'lengths': [] if one.lengths is None else one.lengths,
                'weights': [] if one.batch.weights is None else one.batch.weights,
                'counts': tf.convert_to_tensor(one.counts, tf.int64)}
                for name, one in found.items()} for core, found in self.read.items()}
            self.session = tf.Session()

    def run(self, core, **changed):
        """Evaluates all of a core by feature; core 7 gets what is `changed`."""
        feed = {self.fed[core][name]: value for name, value in {
            **GOOD, **(changed if core == 7 else {})}.items()}
        found = self.session.run(self.everything[core], feed)
        return {name: {part: list(value) for part, value in one.items()}
                for name, one in found.items()}

    def problem(self, **changed):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            self.run(7, **changed)
        return checks.message_to_problem(caught.value.message)


@pytest.fixture(scope='module')
def cores():
    found = Cores()
    yield found
    found.session.close()


def test_ids_samples_weights_and_lengths_are_those_of_each_feature(cores):
    for core in (6, 7):
        found = cores.run(core)
        assert {name: (one['samples'], one['ids'], one['lengths'])
                for name, one in found.items()} == READ
        assert {name: one['weights'] for name, one in found.items() if one['weights']} == {
            'weighted': [1., 2., 3.]}
        assert {name: one['counts'][1] for name, one in found.items() if one['counts'][1]} == {
            'matrix': 1, 'words': 2}


BAD = [
    ('dense', {'dense': np.array([2**32 + 1, 9])}, 'E501', '4294967297 in sample 0 (1 in all)'),
    ('int32', {'int32': np.array([-2**31, 12], np.int32)}, 'E501',
     '-2147483648, 12 in sample 0, 1 (2 in all)'),
    ('matrix', {'matrix': np.array([[0, 9], [10, 0]])}, 'E501', '10 in sample 1 (1 in all)'),
    ('sparse', {'sparse': sparse([1, -2, 3])}, 'E501', '-2 in sample 0 (1 in all)'),
    ('sparse', {'sparse': sparse([1, 2, 3], LATER)}, 'E511', '2'),
    ('sparse', {'sparse': sparse([1, 2, 3], samples=3)}, 'E511', '3'),
    ('ragged', {'ragged': rows(8, 9, 11)}, 'E501', '10 in sample 1 (1 in all)'),
    ('ragged', {'ragged': rows(0, 3)}, 'E511', '1'),
    ('weighted', {'weights': weights([1., np.nan, 3.])}, 'E518', 'nan'),
    ('weighted', {'weights': weights([1., 2.], PLACES[:2])}, 'E518', '2 weights for 3 ids'),
    ('words', {'words': sparse([-1, -2, 3])}, 'E501', '-2 in sample 0 (1 in all)'),
    ('sequence', {'sequence': sparse([1, 2, 3], LATER)}, 'E511', '2')]


@pytest.mark.parametrize('name, changed, code, got', BAD)
def test_one_bad_feature_of_one_core_is_refused_and_only_on_that_core(
        cores, name, changed, code, got):
    problem = cores.problem(**changed)
    assert (problem.code, problem.where, problem.got) == (
        code, f'feature "{name}" on core 7', got)
    assert cores.run(6)['dense']['ids'] == cores.run(7)['dense']['ids'] == [0, 9]


def test_nothing_that_an_engine_takes_can_be_had_from_a_bad_core():
    features = [one for one in FEATURES if one.name in ('dense', 'weighted', 'sequence')]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = {name: fed_later(value) for name, value in GOOD.items()}
        read = CoreIds(features).read(given_of(fed), 7)
        feed = {fed[name]: value for name, value in {
            **GOOD, 'weights': weights([1., np.inf, 3.])}.items()}
        parts = [part for one in read.values() for part in (*one.batch, one.lengths)
                 if isinstance(part, tf.Tensor)]
        assert len(parts) == 2 + 3 + 3
        for part in parts:
            with pytest.raises(tf.errors.InvalidArgumentError, match='weights must be finite'):
                session.run(part, feed)


def test_a_sequence_that_is_too_long_and_policies_are_counted_and_no_error(cores):
    longer = tf.SparseTensorValue([[0, 0], [0, 2], [0, 5]], np.array([1, 2, 3]), [2, 6])
    changed = {'sequence': longer, 'wrapped': np.array([-1, 12]), 'dropped': sparse([-1, 10, 3])}
    found = cores.run(7, **changed)
    # Seen, missing, truncated, out of range.
    assert {name: (found[name]['ids'], found[name]['counts']) for name in changed} == {
        'sequence': ([1], [1, 0, 2, 0]), 'wrapped': ([9, 2], [2, 0, 0, 2]),
        'dropped': ([3], [1, 0, 0, 2])}


def test_a_core_has_one_check_and_all_cores_share_the_function_that_explains(cores):
    kinds = [operation.type for operation in cores.graph.get_operations()]
    assert kinds.count('Assert') == 2 and kinds.count('StringJoin') == 0
    assert len({operation.get_attr('f').name for operation in cores.graph.get_operations()
                if operation.type.endswith('PartitionedCall')}) == 1


@pytest.mark.parametrize('samples, fails', [(1, False), (2, False), (3, True)])
def test_a_batch_may_lack_samples_where_that_is_said_but_has_none_too_many(samples, fails):
    features = [IdReader(name='f', num_samples=2, combiner='sum', vocabulary_size=10,
                         may_lack_samples=True)]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = fed_later(GOOD['sparse'])
        batch = CoreIds(features).read({'f': (fed, None)}, 0)['f'].batch
        feed = {fed: sparse([1, 2, 3], [[0, 0], [0, 1], [samples - 1, 2]], samples)}
        if not fails:
            assert session.run(batch.ids, feed).tolist() == [1, 2, 3]
            return
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(batch.ids, feed)
    assert checks.message_to_problem(caught.value.message).code == 'E511'


def test_ids_that_are_too_many_are_refused_also_if_the_last_is_out_of_range():
    features = [IdReader(name='f', num_samples=2, combiner=None, vocabulary_size=10,
                         may_lack_samples=True)]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.int64, [None, None])
        batch = CoreIds(features).read({'f': (fed, None)}, 0)['f'].batch
        assert session.run([batch.samples, batch.ids], {fed: [[9]]}) == [[0], [9]]
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(batch.ids, {fed: [[1, 2], [3, 10]]})
    assert str(checks.message_to_problem(caught.value.message)).startswith(
        'E512 feature "f" on core 0: a table with combiner None takes one id per sample; got 4.')
