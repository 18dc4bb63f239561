"""Every import path of scripts leads to its name again, and the table of names is true."""

import importlib.metadata
import json
import pathlib

import pytest
from harness import import_paths
from harness.processes import run_python
from harness.tools import load

from estimator_tpu_embedding.compat import old_names

TESTS = pathlib.Path(__file__).resolve().parent.parent
API_TABLE = load('make_api_table')
GOLDEN = json.loads(API_TABLE.GOLDEN.read_text())


@pytest.fixture(scope='module')
def found():
    """What one process with `install()` says of all paths and names."""
    done = run_python('-c', f'import sys; sys.path.insert(0, {str(TESTS)!r}); '
                      'from harness import import_paths; import_paths.main()')
    assert done.returncode == 0
    return json.loads(done.stdout)


@pytest.mark.parametrize('number', range(len(import_paths.PATHS)), ids=[
    f'{statement}: {name}' for statement, name, _ in import_paths.PATHS])
def test_a_path_leads_to_the_very_object(found, number):
    assert found['paths'][number] == ''


def test_every_name_that_the_table_calls_restored_resolves(found):
    assert not {name: problem for name, problem in found['names'].items()
                if problem and old_names.rule_of(name).fate == 'restored'}


def test_what_the_table_calls_refused_can_be_imported_and_raises_when_it_is_used(found):
    assert not {name: found['names'][name] for name in found['uses'] if found['names'][name]}
    assert len(found['uses']) >= 10
    assert not {name: problem for name, problem in found['uses'].items()
                if not problem.startswith(('UnsupportedError: E930 ', 'UnsupportedError: E914 '))}


@pytest.mark.skipif(
    importlib.metadata.version('tensorflow').split('.')[:2] != GOLDEN['current'].split('.')[:2],
    reason='an older TensorFlow has some of it still')
def test_what_the_table_calls_gone_is_gone(found):
    assert not {name for name, problem in found['names'].items()
                if not problem and old_names.rule_of(name).fate == 'gone'}


def test_every_lost_name_falls_under_a_rule_and_every_rule_is_needed():
    rules = [old_names.rule_of(name) for name in API_TABLE.all_lost()]
    assert None not in rules
    assert set(old_names.rules()) == set(rules)


def test_the_table_is_made_of_the_golden_and_the_rules():
    assert API_TABLE.TABLE.read_text() == API_TABLE.table(GOLDEN)


def test_classes_of_several_paths_are_one_for_isinstance_and_subclasses(tmp_path):
    done = run_python('-c', f'''
import estimator_tpu_embedding as ete
ete.install()
import tensorflow as tf
from tensorflow.compat.v1 import estimator as v1
from tensorflow.python.estimator import estimator as old, run_config as old_run_config
from tensorflow.python.tpu import tpu_config, tpu_estimator
from tensorflow_estimator.python.estimator.tpu import tpu_estimator as by_path

class Mine(tf.compat.v1.estimator.tpu.TPUEstimator):
    def __init__(self, **kwargs):
        super().__init__(lambda features, mode, params: None, **kwargs)

mine = Mine(config=tpu_config.RunConfig(model_dir={str(tmp_path)!r}), train_batch_size=8)
for cls in (tpu_estimator.TPUEstimator, by_path.TPUEstimator, ete.TPUEstimator, old.Estimator,
            v1.Estimator):
    assert isinstance(mine, cls) and issubclass(Mine, cls), cls
assert isinstance(mine.config, old_run_config.RunConfig)
assert isinstance(mine.config, tf.estimator.RunConfig)

class Spec(by_path.TPUEstimatorSpec):
    pass

assert isinstance(Spec('infer', predictions=dict(a=tf.zeros([1]))), v1.tpu.TPUEstimatorSpec)
assert v1.Estimator in tf.estimator.Estimator.__mro__  # as in 2.15, not the other way round

before = tf.estimator, by_path.TensorPacker
ete.install()
assert (tf.estimator, by_path.TensorPacker) == before
assert tpu_estimator.TPUEstimator is ete.TPUEstimator
from tensorflow.python.estimator import no_such_module
''', loaded=True)
    assert done.stderr.strip().splitlines()[-1].startswith(
        "ImportError: cannot import name 'no_such_module'")
