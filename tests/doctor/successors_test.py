"""Successors of names of Python 2 are there, and packages have the names that pip knows."""

import builtins
import importlib

import pytest

from estimator_tpu_embedding.doctor import successors
from estimator_tpu_embedding.doctor.findings import Question


def resolved(path):
    """A module, or what a module or builtin has by that name."""
    module, _, name = path.rpartition('.')
    if not module:
        return getattr(builtins, path, None) or importlib.import_module(path)
    owner = resolved(module)
    return getattr(owner, name, None) or importlib.import_module(path)


@pytest.mark.parametrize('successor', sorted({*successors.NAMES.values(),
                                              *successors.MODULES.values()} - {'tkinter'}))
def test_what_is_to_be_used_instead_is_there(successor):
    assert resolved(successor)


@pytest.mark.parametrize('question, instead', [
    (Question('urlparse', 'urljoin', True), 'urllib.parse'),
    (Question('urllib', 'urlencode'), 'urllib.parse.urlencode'), (Question('os', 'of_nobody'), '')])
def test_a_name_has_a_successor_of_its_own_or_that_of_its_module(question, instead):
    assert successors.instead_of(question) == instead


@pytest.mark.parametrize('module, package', [
    ('sklearn.metrics', 'scikit-learn'), ('google.cloud.bigquery', 'google-cloud-bigquery'),
    ('google.cloud', ''), ('google.protobuf.text_format', 'protobuf'),
    ('tensorflow_addons.layers', 'tensorflow-addons'), ('official.nlp', 'tf-models-official'),
    ('official.r1.mnist', ''), ('tensorflow_serving.apis', 'tensorflow-serving-api'),
    ('tensorflow_of_nobody', ''), ('text', ''),
    ('pandas', 'pandas'), ('model_utils', '')])
def test_a_module_leads_to_its_package(module, package):
    assert successors.package_of(module) == package
