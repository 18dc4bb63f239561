import dataclasses
import functools
import re

import pytest
from harness.work import calls_of

from estimator_tpu_embedding.core.optimizers import (
    Adagrad,
    Adam,
    Bounds,
    ConstantRate,
    DynamicRate,
    Ftrl,
    StochasticGradientDescent,
    shared_code_warnings,
)
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import (
    FeatureSpec,
    Kernels,
    Quantization,
    TableSpec,
    Topology,
)
from estimator_tpu_embedding.errors import ConfigError

TABLES = [TableSpec(name='video', vocabulary_size=22, dimension=4),
          TableSpec(name='ad', vocabulary_size=3, dimension=1, combiner=None,
                    optimizer=StochasticGradientDescent(learning_rate=0.5))]
FEATURES = [FeatureSpec(name='watched', table='video'), FeatureSpec(name='liked', table='video'),
            FeatureSpec(name='shown', table='ad')]
TOPOLOGY = Topology(num_hosts=4, cores_per_host=2)


def make_plan(tables=TABLES, features=FEATURES, topology=TOPOLOGY, **kwargs):
    return resolve(tables, features, topology, **{
        'batch_size': 16, 'optimizer': Adagrad(learning_rate=0.1), **kwargs})


def problems_of(*args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        make_plan(*args, **kwargs)
    return caught.value.problems


def test_a_plan_prints_what_will_happen():
    assert str(make_plan(strategy='mod')) == '''\
training, global 16 = 4 hosts x 2 cores x 2, mod, not pipelined
  table ad: 3 x 1, None, stochastic_gradient_descent, 0 slots, rows per host [1, 1, 1, 0], \
features "shown"
  table video: 22 x 4, mean, adagrad, 1 slot, rows per host [6, 6, 5, 5], \
features "liked", "watched"
  bytes per host [196, 196, 164, 160]'''
    # video on host 0: 6 rows x 4 floats x 4 bytes x (rows and one slot) = 192; ad: 1 x 1 x 4 = 4


def test_all_problems_come_at_once_sorted_by_where_they_are():
    problems = problems_of(
        [TableSpec(name='b', vocabulary_size=0, dimension=-1, combiner='max'),
         TableSpec(name='a', vocabulary_size=2**31, dimension=4, initializer=3)],
        [FeatureSpec(name='f', table='c', max_sequence_length=-1)],
        Topology(num_hosts=0, cores_per_host=1), strategy='hash', mode='predict')
    assert [(problem.where, problem.code) for problem in problems] == [
        ('feature "f"', 'E431'), ('feature "f"', 'E432'), ('mode', 'E441'),
        ('partition_strategy', 'E440'), ('table "a"', 'E412'), ('table "a"', 'E415'),
        ('table "a"', 'E430'), ('table "b"', 'E412'), ('table "b"', 'E413'),
        ('table "b"', 'E414'), ('table "b"', 'E430'), ('topology', 'E410')]


@pytest.mark.parametrize('change, line', [
    ({'batch_size': 10},
     'E411 batch_size: batch size 10 must be divisible by number of replicas 8; got 10 over '
     '4 hosts x 2 cores.  Use 8 or 16.'),
    ({'batch_size': 0}, 'E411 batch_size: it must be a positive int; got 0.'),
    ({'optimizer': None},
     'E442 table "video": training needs an optimizer; got none.  Set optimization_parameters '
     'of the table or of the spec.'),
    ({'tables': TABLES[:1], 'features': []}, 'E402 plan: at least one feature is needed; got '
     'none.\nE430 table "video": a table needs at least one feature; got none.'),
    ({'features': [*FEATURES, FEATURES[0]]},
     'E404 feature "watched": the name of a feature must be unique; got 2 of that name.'),
    ({'features': [*FEATURES, FeatureSpec(name='f', table='vidoe')]},
     'E431 feature "f": table "vidoe" is not defined; tables: "ad", "video".  '
     'Did you mean "video"?'),
])
def test_each_problem_says_where_what_was_expected_what_came_and_the_remedy(change, line):
    with pytest.raises(ConfigError) as caught:
        make_plan(**change)
    assert str(caught.value) == line


@pytest.mark.parametrize('changes, says', [
    ({'num_buckets': 1}, 'num_buckets is 1, must be at least 2 for simulated quantization'),
    ({'num_buckets': 2.}, 'num_buckets is 2.0, must be'), ({'num_buckets': 2**31}, 'at most'),
    ({'lower': float('nan')}, 'lower of its quantization'), ({'upper': 2e38}, 'upper of')])
def test_a_quantization_that_cannot_work_is_refused(changes, says):
    quantization = Quantization(**{'num_buckets': 4, 'lower': -1., 'upper': 1., **changes})
    table = dataclasses.replace(TABLES[0], quantization=quantization)
    with pytest.raises(ConfigError, match=f'E417 table "video": .*{says}'):
        make_plan([table, TABLES[1]])


@pytest.mark.parametrize('optimizer, codes', [
    (Adagrad(learning_rate=float('nan')), ['E421']),
    (Adagrad(learning_rate=float('inf')), ['E421']),
    (Adagrad(learning_rate=-0.1), ['E421']),
    (Adagrad(learning_rate=abs), ['E421']),
    (Adagrad(learning_rate='0.1'), ['E421']),
    (Adam(learning_rate=0.1, use_non_lazy_adam=True, accumulate=False), ['E428']),
    (Adagrad(learning_rate=0.1, accumulate=False, clip_gradients=Bounds(upper=1.)), ['E429']),
    (Ftrl(learning_rate=0.1, lr_power=0.5, l1=-1., beta=float('nan')), ['E425'] * 3),
    (Adam(learning_rate=0.1, beta1=1., beta2=-0.1, epsilon=0), ['E425'] * 3),
    (Adagrad(learning_rate=0.1, initial_accumulator=None), ['E425']),
    (Adagrad(learning_rate=0.1, initial_accumulator=0.0), ['E425']),
    (Adagrad(learning_rate=0.1, initial_accumulator=1e-45), ['E425']),
    (Adagrad(learning_rate=0.1, decay=-1.0), ['E426']),
    (Adagrad(learning_rate=0.1, clip_weights=Bounds(lower=1.0, upper=-1.0)), ['E427']),
    (Adagrad(learning_rate=0.1, clip_gradients=Bounds(upper=float('nan'))), ['E427'])])
def test_p07_n05_n07_hyper_parameters_that_cannot_work_are_refused(optimizer, codes):
    problems = problems_of(TABLES[:1], FEATURES[:2], optimizer=optimizer)
    assert [problem.code for problem in problems] == codes


def test_p10_more_tables_than_the_ceiling_are_refused():
    many = [TableSpec(name=f't{i}', vocabulary_size=2, dimension=1) for i in range(10_001)]
    problems = problems_of(many, [FeatureSpec(name=t.name, table=t.name) for t in many])
    assert [str(p) for p in problems] == [
        'E405 plan: at most 10000 tables are allowed; got 10001.']


@pytest.mark.parametrize('name', ['', 'a//b', '../../etc/x', '/abs', 'a/../b', 'x' * 1001,
                                  'a\x1b]52;c;', 'a\nb', 'a\u202eb', 'a\0b', 7])
def test_p11_p12_names_that_could_become_paths_or_terminal_escapes_are_refused(name):
    problems = problems_of([TableSpec(name=name, vocabulary_size=2, dimension=1)],
                           [FeatureSpec(name='f', table=name)])
    assert {problem.code for problem in problems} == {'E403'}
    assert all(str(problem).isprintable() for problem in problems)


def test_p13_a_table_called_as_the_slot_of_another_is_refused_with_both_names():
    named = [TableSpec(name=name, vocabulary_size=2, dimension=1)
             for name in ('user', 'User', 'user/Adagrad')]
    problem, = problems_of(named, [FeatureSpec(name=t.name, table=t.name) for t in named])
    assert problem.code == 'E460'
    assert '"user/Adagrad"' in problem.where and 'of table "user"' in problem.rule


def test_p23_many_features_of_one_table_take_no_work_that_is_quadratic():
    def work(count):
        features = [FeatureSpec(name=f'f{number}', table='video') for number in range(count)]
        return calls_of(lambda: make_plan(TABLES[:1], features).features_of('video'))

    work(10)
    # Ten times as many: quadratic is a hundred times the work.
    assert work(10_000) < 12 * work(1_000)
    assert len(make_plan(TABLES[:1], [FeatureSpec(name=f'f{number}', table='video') for number in
                                      range(100_000)]).features_of('video')) == 100_000


def test_no_tables_are_a_plan_only_where_that_is_said():
    with pytest.raises(ConfigError, match='E402'):
        resolve([], [], Topology(), batch_size=2)
    assert resolve([], [], Topology(), batch_size=2, may_be_empty=True).tables == ()
    with pytest.raises(ConfigError, match='E402'):  # A feature without a table is none.
        resolve([], [FeatureSpec(name='f', table='t')], Topology(), batch_size=2,
                may_be_empty=True)


@pytest.mark.parametrize('said, problem', [
    (Kernels('fast'), "E474 here: kernels must be one of auto, native, stock; got 'fast'."),
    (Kernels(None), 'E474 here: .*got None.'),
    (Kernels(threads=0), r'E475 here: kernel_threads must be in \[1, 1024\]; got 0.  Leave'),
    (Kernels(threads=1025), 'E475'), (Kernels(threads=True), 'E475'),
    (Kernels(threads=2.), 'E475'), (Kernels('fast', -1), '(?s)E474.*E475')])
def test_kernels_that_cannot_be_are_refused(said, problem):
    assert re.search(problem, str(ConfigError(*said.problems('here'))))


def ramp(slope, step):
    return slope * step


def lambdas(count):
    return [lambda step: step for _ in range(count)]


SHARED = functools.partial(ramp, 2.)


@pytest.mark.parametrize('functions, got', [
    (lambdas(3), '3 functions of the code of "<lambda>"'),
    ([functools.partial(ramp, slope) for slope in (1., 2.)], '2 functions of the code of "ramp"'),
    ([SHARED, SHARED], None), ([SHARED, abs], None), ([], None)])
def test_functions_of_the_same_code_are_said_once_per_code(functions, got):
    rates = [ConstantRate(value=.1), *[DynamicRate(function=one) for one in functions]]
    assert [(problem.code, problem.got) for problem in shared_code_warnings(rates)] == (
        [('W424', got)] if got else [])
