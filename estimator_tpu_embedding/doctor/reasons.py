"""Says of one name, asked of the installed libraries, what becomes of it and why.

Reasons and successors come from the tables that the hints of `etpe run` use, and of Python and
NumPy from `successors`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..compat import lost_names, moved, tf1
from ..compat.contrib import advice, same
from . import libraries, successors
from .facts import Answer, Question

_OLD_ROAD = re.compile(r'\.python\.(?:\w+\.){1,2}')  # As in contrib.tpu.python.tpu.tpu_config.

_CHANGED = {'numpy.bool': 'bool', 'numpy.long': 'int'}


class Reason(NamedTuple):
    """What becomes of a name.

    Attributes:
      code: of the finding about it; `''` if there is nothing to say.
      verdict: one of `facts.VERDICTS`.
      message: why, and what helps.
      successor: see `facts.Finding`.
    """

    code: str
    verdict: str
    message: str = ''
    successor: str = ''


def reason_of(question: Question, answer: Answer | None, why_unknown: str = '') -> Reason:
    """Returns what becomes of a name, whatever other names the program uses.

    Args:
      question: the name.
      answer: what the libraries said; `None` if they did not.
      why_unknown: says why they did not.
    """
    if answer is None:
        return Reason('W201', 'unknown', f'nobody could be asked about it: {why_unknown}')
    if answer.refused:
        return Reason('E104', 'lost', f'it can be imported, and raises when it is used: '
                      f'{answer.refused}')
    if answer.run:
        if answer.python:
            old = _CHANGED.get(question.path)
            return Reason('W219', 'there', f'it was the type {old} of Python, and is a type of '
                          f'NumPy today: write {old} if that is meant') if old else Reason(
                '', 'there')
        if libraries.top(question) not in libraries.OF_TENSORFLOW:
            instead, is_exact = successors.instead_of(question)
            return Reason('I301', 'restored', f'{_owner(libraries.top(question))} lacks it: etpe '
                          'run restores it, and install(old_python=True) in a library',
                          instead if is_exact else '')
        return Reason('I304', 'restored', 'it is there with Keras 2 only, which etpe run selects'
                      ) if answer.keras2 else Reason(
            'I301', 'restored', 'TensorFlow lacks it, and etpe run restores it')
    if answer.tf1:
        return Reason('I302', 'tf1', 'it is a name of TensorFlow 1: etpe run --tf1 restores it')
    if answer.contrib:
        return Reason('I303', 'contrib', 'etpe run --contrib restores it', _same(question.path))
    if answer.python:
        return Reason('E105', 'lost', 'Keras 3 has it, and Keras 2, which etpe run selects, lacks '
                      'it')
    return _missing(question, answer)


def _missing(question: Question, answer: Answer) -> Reason:
    """Returns why no world has a name."""
    package, path = libraries.top(question), question.path
    is_import_lacking = answer.lacking == question.module or (
        question.module.startswith(f'{answer.lacking}.'))
    if package in ('tensorflow', 'tensorflow_core'):
        return _lost_in_tensorflow(path, answer)
    if not answer.is_examined and not answer.error:
        return Reason('W201', 'unknown', f'{answer.lacking} is no file of the installed package '
                      f'{package}; it may make the module when it runs')
    if successors.was_in_python(question) and is_import_lacking:
        instead, is_exact = successors.instead_of(question)
        return Reason('E123', 'moved' if instead else 'lost', f'Python has no module '
                      f'{answer.lacking} any more' + _use(instead), instead if is_exact else '')
    if package in libraries.PYTHON and is_import_lacking and answer.lacking == package:
        return Reason('E123', 'lost', f'this Python has no module {package} on this system')
    if answer.lacking == package or not answer.is_examined:
        name = successors.package_of(path)
        return Reason('E111', 'package', f'no installed package has the module {answer.lacking}'
                      + successors.made_by(answer.lacking) + '; '
                      + (f'pip install {name}' if name else 'it is no file of the project either, '
                         'as far as that was scanned; if it lies in a package, import it from '
                         'there'))
    instead, is_exact = successors.instead_of(question)
    code = ('E121' if package == 'numpy' else 'E113' if package in libraries.OF_TENSORFLOW
            or package not in libraries.PYTHON else 'E122')
    return Reason(code, 'moved' if instead else 'lost', f'{_owner(package)} has no '
                  f'{_shown(answer.lacking)}' + (_use(instead) or _nearest(answer)),
                  instead if is_exact else '')


def _lost_in_tensorflow(path: str, answer: Answer) -> Reason:
    """Returns why no TensorFlow that etpe run can give has a name, by the tables of `compat`."""
    if found := libraries.in_contrib(path):
        message = advice.missing(f'tensorflow.contrib.{found["name"]}').replace(
            'install(contrib=True)', 'etpe run --contrib') if found['name'] else tf1.NO_CONTRIB
        instead = _same(path)
        return Reason('E103', 'lost', message if '; use ' in message else message + _use(instead),
                      instead)
    if today := moved.advice(path):
        return Reason('E102', 'moved', today)
    rule = lost_names.rule_of(path) or lost_names.rule_of(path.replace('tensorflow', 'tf', 1))
    if rule is not None and rule.fate == 'gone':
        return Reason('E101', 'lost', f'the installed TensorFlow lacks it: {rule.note}')
    name = path.removeprefix('tensorflow.').partition('.')[0]
    if path.count('.') >= 1 and name in tf1.REPLACED and answer.lacking == f'tensorflow.{name}':
        new = tf1.REPLACED[name]
        return Reason('E101', 'moved', f'it is older than TensorFlow 1.15{_use(new)}',
                      new.replace('tf.', 'tensorflow.', 1)
                      + path.removeprefix(f'tensorflow.{name}')
                      if name in tf1.SAME_ARGUMENTS else '')
    return Reason('E101', 'lost', f'neither the installed TensorFlow nor etpe run, with any flag, '
                  f'has {_shown(answer.lacking)}{_nearest(answer)}')


def _same(path: str) -> str:
    """Returns the successor of a name of `tf.contrib`, if it has exactly one."""
    found = libraries.in_contrib(path)
    if not found or not found['name']:
        return ''
    area, _, rest = found['name'].partition('.')
    last = rest.rpartition('.')[2]
    is_old_road = _OLD_ROAD.match(f'.{rest}') is not None
    return same.successor(f'{area}.{last if is_old_road else rest}')


def _owner(package: str) -> str:
    return {'builtins': 'Python', 'numpy': 'the installed NumPy'}.get(
        package, f'the installed {package}' if package not in libraries.PYTHON else 'Python')


def _shown(path: str) -> str:
    return path.removeprefix('builtins.')


def _use(instead: str) -> str:
    return f'; use {_shown(instead)}' if instead else ''


def _nearest(answer: Answer) -> str:
    return f'; did you mean {_shown(answer.nearest)}?' if answer.nearest else ''
