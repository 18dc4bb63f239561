"""What the doctor calls restored can be imported under `etpe run`, what it calls lost cannot."""

import json

import pytest
from harness.processes import DEADLINE, run_etpe
from harness.tools import load

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.compat import old_names
from estimator_tpu_embedding.doctor import oracle, verdicts
from estimator_tpu_embedding.doctor.findings import Question

TRY_ALL = '''
import json, sys, tensorflow
worked = []
for number, statement in enumerate(json.load(open(sys.argv[1]))):
    try:
        exec(statement, {'tensorflow': tensorflow})
        worked.append(number)
    except Exception:
        pass
json.dump(worked, open(sys.argv[2], 'w'))
'''
WORLDS = {'': (), 'tf1': ('--tf1',), 'contrib': ('--contrib',),
          'both': ('--tf1', '--contrib')}


def attribute(path):
    """The question of `import tensorflow; tensorflow.a.b`."""
    return Question('tensorflow', path)


def imported(path):
    """The question of `from a.b import c`."""
    module, _, name = path.rpartition('.')
    return Question(module, name, True)


def statement(question):
    if question.is_import:
        return f'from {question.module} import {question.names}'
    return question.path


def all_questions():
    """Every name of every table, by the paths that scripts take: attributes first."""
    lost = load('make_api_table').all_lost()
    ete.install()  # The areas take names of it.
    from estimator_tpu_embedding.compat.contrib import contrib_modules
    contrib = [f'contrib.{name}' for name in (
        *old_names.gone_of_contrib(), *old_names.same_in_contrib(),
        *(f'{area}.{name}' for area, names in contrib_modules.AREAS.items() for name in names))]
    return [
        *(attribute(name.removeprefix('tf.')) for name in lost if name.startswith('tf.')),
        *(attribute(name) for name in [*old_names.before_1_15(), *contrib]),
        *(attribute(new.removeprefix('tf.')) for values in old_names.before_1_15().values()
          for new in values.split(', ')),
        *(imported(name) for name in lost if name.startswith('tensorflow')),
        *(imported(name) for name in old_names.private_advice()),
        *(imported(name) for name in old_names.homes() if '.' in name),
        *(imported(f'{owner}.{name}') for owner, names in old_names.moved().items()
          for name in names if not owner.endswith('Builder')),
        *(imported(f'tensorflow.{name}') for name in contrib)]


@pytest.fixture(scope='module')
def questions():
    return list(dict.fromkeys(all_questions()))


@pytest.fixture(scope='module')
def worked(questions, tmp_path_factory):
    """By world, the questions whose statements did not fail under a real `etpe run`."""
    folder = tmp_path_factory.mktemp('law')
    (folder / 'try_all.py').write_text(TRY_ALL)
    (folder / 'all.json').write_text(json.dumps([statement(one) for one in questions]))
    found = {}
    for world, flags in WORLDS.items():
        done = run_etpe('run', *flags, folder / 'try_all.py', folder / 'all.json',
                        folder / f'{world}.json')
        assert done.returncode == 0
        found[world] = {questions[number]
                        for number in json.loads((folder / f'{world}.json').read_text())}
    return found


@pytest.fixture(scope='module')
def judged(questions):
    answers = oracle.ask(questions, [], DEADLINE)
    assert answers.reason == ''
    return {one: verdicts.reason_of(one, answers.found[one]) for one in questions}


@pytest.mark.soak
def test_what_is_called_restored_is_there_with_the_flag_and_not_without(worked, judged):
    wrong = []
    for question, reason in judged.items():
        names = [world for world in WORLDS if question in worked[world]]
        fits = {
            'there': '' in names, 'restored': '' in names,
            'tf1': 'tf1' in names and '' not in names,
            'contrib': {'contrib', 'both'} <= set(names) and not {'', 'tf1'} & set(names),
            'moved': not names, 'lost': not names or reason.code == 'E104'}[reason.verdict]
        if not fits:
            wrong.append((question.path, reason, names))
    assert wrong == []
    kinds = {reason.code for reason in judged.values()}
    assert {'', 'I301', 'I302', 'I303', 'E101', 'E102', 'E103', 'E104'} <= kinds


@pytest.mark.soak
def test_every_exact_successor_is_there():
    successors = [attribute(name.removeprefix('tensorflow.'))
                  for name in old_names.same_in_contrib().values()]
    answers = oracle.ask(successors, [], DEADLINE)
    assert len(set(successors)) > 80
    assert [one.path for one in successors if not (
        answers.found[one].run or answers.found[one].tf1)] == []
