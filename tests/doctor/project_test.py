"""Names that files of a project take from each other."""

import pathlib

import pytest
from harness.scanned import scanned, uses, write

from estimator_tpu_embedding.doctor import diagnose, sources


def paths(file):
    return [path for _, path in uses(file)]


@pytest.mark.parametrize('statement, written', [
    ('from common import tf', 'tf.x'), ('from common import *', 'tf.x'),
    ('import common', 'common.tf.x'), ('import common as c', 'c.tf.x'),
    ('from common import alias', 'alias.x'), ('from again import tf', 'tf.x'),
    ('from pkg import tf', 'tf.x'), ('from pkg.inner import t as tf', 'tf.x'),
    ('import pkg.inner', 'pkg.inner.t.x'), ('from pkg import inner', 'inner.t.x')])
def test_a_library_is_found_through_other_files(tmp_path, statement, written):
    files = scanned(
        tmp_path, common='import tensorflow as tf\nalias = tf', again='from common import *',
        pkg__init='from .inner import *\nfrom .inner import t as tf',
        pkg__inner='import tensorflow as t', main=f'{statement}\n{written}')
    assert paths(files['main.py']) == ['tensorflow.x']
    assert files['main.py'].unknown == []


def test_imports_of_the_project_are_told_with_their_first_place(tmp_path):
    files = scanned(tmp_path, pkg__init='', pkg__a='', main='import pkg.a\nfrom pkg import a')
    assert {path.removeprefix(f'{tmp_path}/'): place.line
            for path, place in files['main.py'].imports.items()} == {
        'pkg/__init__.py': 1, 'pkg/a.py': 1}


def test_cycles_end(tmp_path):
    files = scanned(tmp_path, a='from b import *\nfrom b import x\nx.y', b='from a import *\ntf.z')
    assert [each.code for each in files['a.py'].unknown] == ['E112']
    assert [each.code for each in files['b.py'].unknown] == ['W201']


@pytest.mark.parametrize('text, subject', [
    ('from common import gone', 'common.gone'), ('import pkg.gone', 'pkg.gone'),
    ('from pkg import gone', 'pkg.gone'), ('from .gone import x', '.gone')])
def test_what_the_project_lacks_is_named(tmp_path, text, subject):
    files = scanned(tmp_path, common='x = 1', pkg__init='', main=text)
    assert [(each.code, each.subject) for each in files['main.py'].unknown] == [('E112', subject)]


@pytest.mark.parametrize('common', [
    'globals()["gone"] = 1', 'def __getattr__(name): pass', 'def f():\n  global gone\n  gone = 1',
    'exec(text)', 'from six.moves import *', 'print "Python 2"'])
def test_a_module_that_may_have_more_names_is_not_accused(tmp_path, common):
    files = scanned(tmp_path, common=common, main='from common import gone')
    assert [each for each in files['main.py'].unknown if each.code == 'E112'] == []


def test_a_file_hides_a_library_only_from_its_own_folder(tmp_path):
    files = scanned(tmp_path, deep__keras='x = 1', deep__a='import keras\nkeras.y', string='',
                    sub__b='import keras\nimport string\nkeras.y', pkg__init='', pkg__logging='',
                    pkg__c='import logging\nlogging.z')
    assert paths(files['deep/a.py']) == []
    assert paths(files['sub/b.py']) == ['keras', 'string', 'keras.y']
    assert paths(files['pkg/c.py']) == ['logging', 'logging.z']


def test_files_of_the_same_project_that_are_imported_are_scanned_too(tmp_path):
    write(tmp_path, main='import beside', beside='import tensorflow\ntensorflow.gone', other='')
    found = diagnose.scan(sources.find([str(tmp_path / 'main.py')]))
    assert [pathlib.Path(one.path).stem for one in found] == ['main', 'beside']
    assert paths(found[1]) == ['tensorflow', 'tensorflow.gone']
