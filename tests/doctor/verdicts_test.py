"""Verdicts and flags, of hand-made uses and answers."""

import pytest

from estimator_tpu_embedding.doctor import verdicts
from estimator_tpu_embedding.doctor.findings import (
    CERTAIN,
    FALLBACK,
    TESTED,
    TRIED,
    Answer,
    Place,
    Question,
    ScannedFile,
    Use,
)
from estimator_tpu_embedding.doctor.oracle import Answers

THERE = Answer(True, True, True, True, keras2=True)
RESTORED = Answer(False, True, True, True)
KERAS2 = Answer(False, True, True, True, keras2=True)
TF1 = Answer(False, False, True, True)
TF2 = Answer(True, True, False, False, keras2=True)
CONTRIB = Answer(False, False, False, True)
KERAS3 = Answer(True, False, False, False)


def tf(names, is_import=False):
    return Question('tensorflow', names, is_import)


def lost(question, lacking=None):
    return Answer(False, False, False, False, lacking=lacking or question.path)


def absent(question):
    """A package that was sought in the file system only."""
    return lost(question, question.module.partition('.')[0])._replace(is_examined=False)


def use(question, line=1, path='job.py', **kwargs):
    return Use(Place(path, line), question, question.path, **kwargs)


def file(*uses, path='job.py', imports=(), is_program=False):
    return ScannedFile(path, list(uses), imports={
        name: Place(path, 1) for name in imports}, is_program=is_program)


def judged(*files, reason='', **kwargs):
    return verdicts.judge(files, Answers({
        one: answer for one, answer in kwargs['answers'].items() if answer is not None}, reason))


def only(question, answer, **kwargs):
    """The one finding about one use of a name, as (code, verdict)."""
    found = judged(file(use(question, **kwargs)), answers={question: answer}).findings
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize('answer, code, verdict', [
    (RESTORED, 'I301', 'restored'), (KERAS2, 'I304', 'restored'), (TF1, 'I302', 'tf1'),
    (KERAS3, 'E105', 'lost'), (RESTORED._replace(refused='E930 x'), 'E104', 'lost'),
    (None, 'W201', 'unknown')])
def test_a_name_gets_the_code_of_the_first_world_that_has_it(answer, code, verdict):
    found = only(tf('a.b'), answer)
    assert (found.code, found.verdict, found.subject) == (code, verdict, 'tensorflow.a.b')


@pytest.mark.parametrize('question, answer, counted', [
    (tf('a'), THERE, {'there': 1}),
    (Question('cv2', 'imread'), absent(Question('cv2', 'imread')), {'package': 1}),
    (Question('pandas', 'DataFrame'), THERE._replace(is_examined=False), {})])
def test_a_name_that_is_there_and_one_of_a_package_are_counted_and_no_finding(
        question, answer, counted):
    result = judged(file(use(question)), answers={question: answer})
    assert (list(result.findings), result.verdicts) == ([], counted)


@pytest.mark.parametrize('question, code, word', [
    (tf('contrib.tpu.TPUConfig'), 'E103',
     'use tf.compat.v1.estimator.tpu.TPUConfig'),
    (Question('tensorflow.contrib.tpu.python.tpu.tpu_config', 'TPUConfig'), 'E103',
     'use tf.compat.v1.estimator.tpu.TPUConfig'),
    (tf('contrib.layers.crossed_column'), 'E103',
     'tf.feature_column.crossed_column'),
    (Question('tensorflow.python.eager.function', 'defun', True), 'E102', 'tf.function'),
    (Question('tensorflow.python.eager', 'profiler', True), 'E102', 'profiler'),
    (Question('tensorflow', 'tsl.x'), 'E101', 'visible by accident'),
    (tf('select'), 'E101', 'tf.where'),
    (Question('builtins', 'xrange'), 'E122', 'Python has no xrange; use range'),
    (Question('six', 'no_such_name'), 'E113', 'the installed six has no six.no_such_name'),
    (Question('keras.layers', 'Sum', True), 'E113', 'keras')])
def test_what_is_gone_gets_its_reason(question, code, word):
    found = only(question, lost(question))
    assert found.code == code
    assert word in found.message


def test_a_name_that_means_something_else_today_is_warned_of_unless_the_program_is_prepared():
    question = Question('numpy', 'long')
    assert only(question, THERE).code == 'W219'
    assert only(question, THERE, is_guarded=True) is None


@pytest.mark.parametrize('question, answer, code, word', [
    (Question('cv2'), None, 'E111', 'pip install opencv-python'),
    (Question('google.cloud.storage'), None, 'E111', 'pip install google-cloud-storage'),
    (Question('of_nobody', 'x', True), None, 'E111', 'no file of the project'),
    (Question('cPickle'), None, 'E123', 'use pickle'),
    (Question('StringIO', 'StringIO'), None, 'E123', 'use io')])
def test_a_missing_module_is_named_with_its_package_or_its_successor(question, answer, code, word):
    found = only(question, absent(question))
    assert found.code == code
    assert word in found.message


def test_an_unanswered_question_is_unknown_with_the_reason():
    result = judged(file(use(tf('a'))), answers={}, reason='TensorFlow is not installed')
    assert [one.code for one in result.findings] == ['W201']
    assert 'TensorFlow is not installed' in result.findings[0].message


@pytest.mark.parametrize('answer, code', [
    (TF1, 'I305'), (CONTRIB, 'I305'), (lost(tf('x')), 'I305'),
    (RESTORED._replace(refused='E930 x'), 'E104')])
def test_a_guarded_name_is_information_unless_it_is_refused_and_forces_no_flag(answer, code):
    result = judged(file(use(tf('x'), is_guarded=True)), answers={tf('x'): answer})
    assert [one.code for one in result.findings] == [code]
    assert result.flags['job.py'] == verdicts.Flags()


def test_a_fallback_is_judged_where_the_name_that_it_stands_in_for_is_missing():
    """`try: tf.a / except AttributeError: tf.b`."""
    body, handler = use(tf('a'), is_guarded=True, attempt=1), use(tf('b'), 2, fallbacks=(1,))

    def codes(a, b):
        return [one.code for one in judged(
            file(body, handler), answers={tf('a'): a, tf('b'): b}).findings]

    assert codes(THERE, lost(tf('b'))) == ['I305']
    assert codes(lost(tf('a')), THERE) == ['I305']
    assert codes(lost(tf('a')), lost(tf('b'))) == ['I305', 'E101']
    assert codes(lost(tf('a')), TF1) == ['I305', 'I302']


def test_what_is_reached_depends_on_the_flags_that_other_names_force():
    """`try: tf.a / except AttributeError: tf.b`, beside a name that forces `--tf1`."""
    body, handler = use(tf('a'), is_guarded=True, attempt=1), use(tf('b'), 2, fallbacks=(1,))
    answers = {tf('a'): TF1, tf('b'): lost(tf('b')), tf('c'): TF1}
    assert [one.code for one in judged(file(body, handler), answers=answers).findings] == [
        'I305', 'E101']
    assert [one.code for one in judged(file(body, handler, use(tf('c'))), answers=answers).findings
            ] == ['I305', 'I302', 'I305']


@pytest.mark.parametrize('chosen, code', [('tensorflow.a', 'I305'), ('tensorflow', 'E101')])
def test_of_two_meanings_that_a_try_chose_the_one_counts_whose_look_up_succeeded(chosen, code):
    """`try: lib = tf.a / except AttributeError: lib = tf.b`, and then `lib.x`."""
    first = use(tf('a.x'), choice=TRIED, chosen=chosen)
    second = use(tf('b.x'), choice=FALLBACK, chosen='tensorflow.b')
    found = judged(file(first, second), answers={
        tf('a.x'): lost(tf('a.x'), 'tensorflow.a'), tf('b.x'): THERE})
    assert [(one.code, one.subject) for one in found.findings] == [(code, 'tensorflow.a.x')]


@pytest.mark.parametrize('choice, code', [(TESTED, 'I305'), (CERTAIN, 'W201')])
def test_one_of_two_meanings_does_if_a_test_chose_it_and_is_doubtful_otherwise(choice, code):
    """`lib = a if hasattr(tf, 'a') else b`, or `lib = a` and later `lib = b`; and then `lib.x`."""
    first, second = (use(one, choice=choice) for one in (tf('a.x'), tf('b.x')))
    found = judged(file(first, second), answers={tf('a.x'): lost(tf('a.x')), tf('b.x'): THERE})
    assert [(one.code, one.subject) for one in found.findings] == [(code, 'tensorflow.a.x')]
    found = judged(file(first, second), answers={one: lost(one) for one in (tf('a.x'), tf('b.x'))})
    assert [one.code for one in found.findings] == ['E101', 'E101']


def test_a_chosen_meaning_forces_no_flag_where_another_is_there():
    first, second = (use(one, choice=TESTED) for one in (tf('x'), tf('compat.v1.x')))
    found = judged(file(first, second), answers={tf('x'): TF1, tf('compat.v1.x'): THERE})
    assert [one.code for one in found.findings] == ['I305']
    assert found.flags['job.py'] == verdicts.Flags()


def flags(*questions, **kwargs):
    found = judged(file(*(use(one) for one in questions)), **kwargs).flags['job.py']
    return [[one.question.path for one in uses] for uses in found]


@pytest.mark.parametrize('names, expected', [
    (('one', 'two'), (['tensorflow.one'], [])),
    (('contrib.x', 'one'), (['tensorflow.one'], ['tensorflow.contrib.x'])),
    (('contrib.x', 'both'), (['tensorflow.contrib.x'], ['tensorflow.contrib.x'])),
    (('contrib.x', 'two'), ([], ['tensorflow.contrib.x'])),
    (('contrib.x', 'compat.v1.both'), ([], ['tensorflow.contrib.x'])),
    (('contrib.lost',), (['tensorflow.contrib.lost'], ['tensorflow.contrib.lost'])),
    (('two', 'both'), ([], []))])
def test_contrib_means_tensorflow_1_unless_a_name_is_of_today(names, expected):
    answers = {tf('one'): TF1, tf('two'): TF2, tf('both'): THERE, tf('compat.v1.both'): THERE,
               tf('contrib.x'): CONTRIB, tf('contrib.lost'): lost(tf('contrib.lost'))}
    assert flags(*map(tf, names), answers=answers) == list(map(list, expected))


def test_names_that_need_opposite_flags_contradict_each_other():
    answers = {tf('one'): TF1, tf('two'): TF2, tf('three'): TF2}
    found = judged(file(use(tf('one')), use(tf('two'), 2)), answers=answers)
    assert [(one.code, one.place.line) for one in found.findings] == [('I302', 1), ('E105', 2)]
    assert 'tensorflow.one (job.py:1)' in found.findings[1].message
    # Where --tf1 would hide more names than it brings, it is the one name that is at fault.
    found = judged(file(*(use(tf(name), line) for line, name in enumerate(
        ('one', 'two', 'three'), 1))), answers=answers)
    assert [(one.code, one.place.line) for one in found.findings] == [('E105', 1)]
    assert not found.flags['job.py'].tf1


def test_a_program_needs_the_flags_of_the_files_that_it_imports():
    answers = {tf('one'): TF1, tf('two'): TF2}
    found = judged(
        file(use(tf('two')), imports=['helper.py'], is_program=True),
        file(use(tf('one'), path='helper.py'), path='helper.py'),
        file(use(tf('two'), path='other.py'), path='other.py', is_program=True),
        answers=answers)
    assert [bool(found.flags[path].tf1) for path in ('job.py', 'other.py')] == [True, False]
    assert {(one.code, one.place.path) for one in found.findings} == {
        ('E105', 'job.py'), ('I302', 'helper.py')}
