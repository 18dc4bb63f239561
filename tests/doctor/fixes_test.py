import ast

import pytest
from harness.successors import found

from estimator_tpu_embedding.doctor.facts import Finding, Place
from estimator_tpu_embedding.doctor.fixes import fixed


def check(before, after, *written):
    result = fixed(before, found(before, *written))
    assert result.text == after
    assert not result.left and result.done
    ast.parse(after)


@pytest.mark.parametrize('before, after', [
    ('import numpy as np\nx = np.int(3)', 'import numpy as np\nx = int(3)'),
    ('import numpy as np\nx = [np.int, np.int]  # np.int32\n',
     'import numpy as np\nx = [int, int]  # np.int32\n'),
    ('import numpy as np\r\nif x:\r\n\ty = ( np.int )\r\n',
     'import numpy as np\r\nif x:\r\n\ty = ( int )\r\n'),
    ("import numpy as np\né = '😀', np.int\n", "import numpy as np\né = '😀', int\n"),
    ('import numpy as np\nx = 1 \n\n\n  # the end, np.int32', None),
    ('\x0cimport numpy as np\ny = x.astype(np.int) \\\n  + 2\n',
     '\x0cimport numpy as np\ny = x.astype(int) \\\n  + 2\n'),
    ('import numpy as np\ny = np.int if(np.int)else np.int\n',
     'import numpy as np\ny = int if(int)else int\n'),
    ('import numpy as np\n@f(np.int)\ndef g(a: np.int = np.int(1)) -> np.int: pass\n',
     'import numpy as np\n@f(int)\ndef g(a: int = int(1)) -> int: pass\n')])
def test_only_the_name_changes(before, after):
    if after is None:  # Nothing to fix: all bytes stay.
        assert fixed(before, []).text == before
    else:
        check(before, after, 'np.int')


def test_what_follows_the_name_stays():
    check('import numpy as np\nnp.int.x()', 'import numpy as np\nint.x()', 'np.int.x')


@pytest.mark.parametrize('before, after', [
    ('from collections import Mapping\n', 'from collections.abc import Mapping\n'),
    ('from collections import Mapping  # why\nx: Mapping\n',
     'from collections.abc import Mapping  # why\nx: Mapping\n'),
    ('from collections import Mapping, OrderedDict\n',
     'from collections import OrderedDict\nfrom collections.abc import Mapping\n'),
    ('from collections import OrderedDict, Mapping  # both',
     'from collections import OrderedDict  # both\nfrom collections.abc import Mapping'),
    ('if x:\r\n\tfrom collections import (OrderedDict,\r\n\t\tMapping)\r\n\ty\r\n',
     'if x:\r\n\tfrom collections import (OrderedDict)\r\n'
     '\tfrom collections.abc import Mapping\r\n\ty\r\n'),
    ('from collections import (\n    Mapping,\n    OrderedDict,\n)\n',
     'from collections import (\n    OrderedDict,\n)\nfrom collections.abc import Mapping\n'),
    ('import os; from collections import Mapping; x = 1\n',
     'import os; from collections.abc import Mapping; x = 1\n')])
def test_names_that_are_imported_come_from_their_new_module(before, after):
    check(before, after, 'Mapping')


def test_names_keep_what_they_are_called():
    check('from collections import Mapping, Iterable as It\n',
          'from collections.abc import Mapping, Iterable as It\n', 'Mapping', 'Iterable as It')
    check('from tensorflow.contrib.layers import xavier\nxavier()\n',
          'from tensorflow.compat.v1 import glorot as xavier\nxavier()\n', 'xavier')
    check('import os, cPickle\ncPickle.dumps(1)\n',
          'import os, pickle as cPickle\ncPickle.dumps(1)\n', 'cPickle', 'cPickle.dumps')
    check('import cPickle as pickle, os\n', 'import pickle, os\n', 'cPickle as pickle')


@pytest.mark.parametrize('before, after', [
    ('import collections\nx = collections.Mapping\n',
     'import collections\nimport collections.abc\nx = collections.abc.Mapping\n'),
    ('"""Head."""\nimport collections, os\nimport re  # last\n\nx = collections.Mapping\nimport y',
     '"""Head."""\nimport collections, os\nimport re  # last\nimport collections.abc\n\n'
     'x = collections.abc.Mapping\nimport y'),
    ('import collections.abc\nx = collections.Mapping',
     'import collections.abc\nx = collections.abc.Mapping'),
    ('import collections\nimport collections.abc as abc\nx = collections.Mapping',
     'import collections\nimport collections.abc as abc\nx = abc.Mapping'),
    ('from __future__ import division\nimport collections\nx = collections.Mapping\n',
     'from __future__ import division\nimport collections\nimport collections.abc\n'
     'x = collections.abc.Mapping\n')])
def test_a_module_of_python_is_imported_unless_it_is(before, after):
    check(before, after, 'collections.Mapping')


@pytest.mark.parametrize('imports, new', [
    ('import tensorflow as tf\n', 'tf.compat.v1.glorot'),
    ('import tensorflow as tf\nimport tensorflow.compat.v1 as tf1\n', 'tf1.glorot'),
    ('import tensorflow\nimport tensorflow as tf\n', 'tf.compat.v1.glorot'),
    ('import tensorflow as tf\nfrom tensorflow.compat import v1\n', 'v1.glorot')])
def test_the_shortest_way_that_the_file_has_is_used(imports, new):
    check(f'{imports}f(tf.contrib.layers.xavier())\n', f'{imports}f({new}())\n',
          'tf.contrib.layers.xavier')


@pytest.mark.parametrize('head, imported', [
    ('#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n', ''), ('"""Head."""\n', '')])
def test_an_import_comes_after_the_head_of_a_file_without_imports(head, imported):
    before = f'{head}from common import tf\nf(tf.contrib.layers.xavier())\n'
    check(before, f'{head}from common import tf\nimport tensorflow\n'
          'f(tensorflow.compat.v1.glorot())\n', 'tf.contrib.layers.xavier')
    before = f'{head}@g\ndef f(tf):\n  tf.contrib.layers.xavier()\n'
    check(before, f'{head}import tensorflow\n@g\ndef f(tf):\n  tensorflow.compat.v1.glorot()\n',
          'tf.contrib.layers.xavier')


@pytest.mark.parametrize('text, written, why', [
    ('import numpy as np\ndef f(int):\n  return np.int(int)\n', 'np.int', 'meaning to int'),
    ('import numpy as np\nfor int in x: pass\nnp.int\n', 'np.int', 'meaning to int'),
    ('import numpy as np\nfrom x import *\nnp.int\n', 'np.int', 'meaning to int'),
    ('import numpy as np\nnp.int = int\n', 'np.int', 'no plain use'),
    ('def f(collections=None): pass\ndef g():\n  import collections\n  collections.Mapping\n',
     'collections.Mapping', 'meaning to "collections"'),
    ('import os; from collections import Mapping, deque\n', 'Mapping', 'other code'),
    ('if x: from collections import Mapping, deque\n', 'Mapping', 'other code'),
    ('from collections import (\n  Mapping,  # maps\n  deque)\n', 'Mapping', 'comments')])
def test_what_is_not_safe_is_left_with_a_reason(text, written, why):
    result = fixed(text, found(text, written))
    assert result.text == text and not result.done
    assert all(why in reason for _, reason in result.left) and result.left


def test_a_name_over_several_lines_is_left():
    text = 'import numpy as np\nx = (np.\n  int)\n'
    finding = Finding('E121', Place('a.py', 2, 6, 3, 6), 'numpy.int', 'np.int', 'is gone', '',
                      'builtins.int')
    assert fixed(text, [finding]).text == text
    assert 'not written in one piece' in fixed(text, [finding]).left[0][1]


def test_findings_without_a_successor_are_nobodys_business():
    text = 'import numpy as np\nnp.int\n'
    assert fixed(text, [one._replace(successor='') for one in found(text, 'np.int')]) == (
        text, [], [])


def test_one_that_is_left_does_not_keep_others_from_being_fixed():
    text = ('import numpy as np\nimport collections\ndef f(int):\n  return np.int\n'
            'x = collections.Mapping\n')
    result = fixed(text, found(text, 'np.int', 'collections.Mapping'))
    assert result.text == (
        'import numpy as np\nimport collections\nimport collections.abc\ndef f(int):\n'
        '  return np.int\nx = collections.abc.Mapping\n')
    assert [finding.written for finding, _ in result.left] == ['np.int']
