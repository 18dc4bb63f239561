"""What is installed, what is missing and what contradicts: by metadata, without an import."""

import importlib.metadata
import importlib.util

import pytest
from harness.processes import run_python

from estimator_tpu_embedding.doctor import environment


@pytest.fixture
def versions(monkeypatch):
    """Lets a test say which packages are installed, by name and version."""
    installed = {'tensorflow': '2.19.1', 'tf-keras': '2.19.0', 'numpy': '2.1.3'}

    def version(name):
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(importlib.metadata, 'version', version)
    monkeypatch.setattr(importlib.metadata, 'requires', lambda name: {
        'tensorflow': ['numpy<2.2.0,>=1.26.0', 'numpy>=9; extra == "and-cuda"', '!']}.get(name))
    return installed


def said():
    return [(one.code, one.subject, one.message) for one in environment.describe()[1]
            if one.code != 'E111']


def test_what_fits_together_is_no_finding(versions):
    assert said() == []
    lines = dict(environment.describe()[0])
    assert (lines['TensorFlow'], lines['Keras']) == ('2.19.1', 'not installed')
    assert 'TF_USE_LEGACY_KERAS=1' in lines['etpe run sets']


@pytest.mark.parametrize('changes, subject, text', [
    ({'tensorflow-cpu': '2.17.0'}, 'tensorflow',
     'tensorflow 2.19.1, tensorflow-cpu 2.17.0 are all installed, in one place; keep one of them'),
    ({'tensorflow': '2.15.1', 'tf-keras': '2.15.0'}, 'tensorflow',
     'TensorFlow 2.15.1 is older than 2.16, the oldest that this package works with'),
    ({'tf-keras': '2.18.0'}, 'tf-keras',
     'tf_keras 2.18.0 belongs to another TensorFlow than 2.19.1; pip install tf-keras~=2.19.0'),
    ({'numpy': '2.3.0'}, 'numpy',
     'tensorflow 2.19.1 needs numpy<2.2.0,>=1.26.0, and 2.3.0 is installed')])
def test_packages_that_contradict_each_other_are_named(versions, changes, subject, text):
    versions.update(changes)
    assert said() == [('W221', subject, text)]


def test_a_package_that_etpe_run_needs_is_named_with_its_version(monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    found = [one for one in environment.describe()[1] if one.code == 'E111']
    assert [one.subject for one in found] == [
        'tensorflow', 'tf_keras', 'tensorflow_estimator', 'psutil']
    assert 'pip install tf-estimator-nightly==2.16.0.dev2024012409' in found[2].message
    assert {one.place for one in found} == {None}


def test_nothing_is_imported_to_describe_it():
    done = run_python('-c', '''
import sys
from estimator_tpu_embedding.doctor import environment
lines, _ = environment.describe()
print(len(lines), {"tensorflow", "numpy", "keras"} & sys.modules.keys())
''')
    assert done.stdout == '10 set()\n'
