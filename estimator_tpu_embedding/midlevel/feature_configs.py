"""Checks the user's structure of `FeatureConfig`s, and makes a `Declared`, a plan and a config.

The configs and their optimizers are TensorFlow's own objects, because users make and compare them.
The checks of their constructors are not repeated.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from .. import _process, _tf, defaults
from ..core import optimizers as core
from ..core.names import name_problems
from ..core.optimizers import Bounds, ConstantRate, DynamicRate, Optimizer, Rate
from ..core.plan import Plan, problems_of, resolve
from ..core.specs import FeatureSpec, Quantization, TableSpec, Topology
from ..errors import ConfigError, InputShapeError, Problem, StructureTypeError, shown
from ..proto.codec import Config, LowDimensionalPacking, encode_tables


def require_this_process() -> None:
    """Makes sure that this process, which must not be a fork, may hold all tables.

    Workers that were chosen are a ConfigError, E738.
    """
    _process.require_threads('TPUEmbedding')
    chosen = defaults.current().cluster
    if chosen.is_used or chosen.is_from_script:
        raise ConfigError(Problem(
            'E738', 'TPUEmbedding', 'that of TF2 has all its tables in this process',
            'workers' + (f' {shown(", ".join(chosen.workers))}' if chosen.workers else ''),
            'Leave --workers and --processes out, or train by a TPUEstimator or by the '
            'TPUEmbedding of TF1.'))


@dataclasses.dataclass(frozen=True, eq=False)
class Declared:
    """The tables and features of one TPUEmbedding object. Made by `declare` only.

    Attributes:
      structure: the user's feature_config.
      paths: the path of each feature in it, `'a/b'`; `''` for a bare FeatureConfig. All flat
        values are in the order of `tf.nest.flatten`.
      features: the FeatureConfigs.
      tables: the TableConfigs, each once, in order of first appearance. All have a name, and an
        optimizer unless none was needed.
    """

    structure: Any
    paths: tuple[str, ...]
    features: tuple[Any, ...]
    tables: tuple[Any, ...]

    def flatten(self, structure: Any, what: str) -> list[Any]:
        """Returns the leaves of a structure, which must be like feature_config.

        Leaves may be anything that is not nested. `what` names the structure in messages.

        Raises:
          InputShapeError: for other keys or another number of leaves; E531.
          StructureTypeError: for another type of container, such as a list for a tuple; E531.
        """
        try:
            # Without the values, which would make the message long.
            tf.nest.assert_same_structure(*[tf.nest.map_structure(lambda _: '.', one)
                                            for one in (self.structure, structure)])
        except (ValueError, TypeError) as error:
            kind = StructureTypeError if isinstance(error, TypeError) else InputShapeError
            difference = str(error).partition('More specifically: ')[2].partition('\nEntire ')[0]
            raise kind(Problem(
                'E531', what, "The two structures don't have the same nested structure",
                shown(difference, 500), 'The first is feature_config: pass one value for each '
                'FeatureConfig, in a structure like it.')) from None
        return list(tf.nest.flatten(structure))

    def flatten_inputs(self, features: Any, weights: Any) -> tuple[list[Any], list[Any]]:
        """Returns ids and weights, each `None` without any, in the order of features."""
        ids = self.flatten(features, 'features')
        return ids, [None] * len(ids) if weights is None else self.flatten(weights, 'weights')

    def pack(self, flat: Iterable[Any]) -> Any:
        """Packs one value for each feature into the structure of feature_config."""
        return tf.nest.pack_sequence_as(self.structure, list(flat))


def declare(feature_config: Any, optimizer: Any, *, needs_optimizer: bool) -> Declared:
    """Checks a declaration and completes its tables, as the original does.

    A table without an optimizer gets `optimizer`, and a table without a name gets
    `table_<position>`. This changes the user's objects, unless there is an error: a ConfigError
    with all problems. If `needs_optimizer`, every table must have one then.
    """
    paths, features = zip(*_tf.joined_paths(feature_config)) if tf.nest.flatten(
        feature_config) else ((), ())
    config = tf.tpu.experimental.embedding.FeatureConfig
    strangers = [
        Problem('E446', feature_label(path), 'feature_config must consist of instances of '
                'tf.tpu.experimental.embedding.FeatureConfig', shown(type(feature).__name__))
        for path, feature in zip(paths, features) if not isinstance(feature, config)]
    if strangers:
        raise ConfigError(*strangers)
    tables = tuple({id(feature.table): feature.table for feature in features}.values())
    names = [f'table_{position}' if table.name is None else table.name
             for position, table in enumerate(tables)]
    optimizers = [optimizer if table.optimizer is None else table.optimizer for table in tables]
    declared = Declared(feature_config, paths, features, tables)
    problems = list(_problems(declared, names, optimizers, needs_optimizer))
    if problems:
        raise ConfigError(*problems)
    for table, name, own in zip(tables, names, optimizers):
        table.name, table.optimizer = name, own
    return declared


def feature_names(declared: Declared) -> tuple[str, ...]:
    """Returns a legal and unique name for each feature: its path if that is legal and unique."""
    names: dict[str, None] = {}
    paths = set(declared.paths)
    for position, path in enumerate(declared.paths):
        if path in names or any(name_problems('feature', path)):
            path = f'feature_{position}'
            while path in paths:
                path += '_'
        names[path] = None
    return tuple(names)


def plan_of(declared: Declared, output_shapes: Sequence[tuple[int, ...]], *, replicas: int,
            pipelined: bool, id_policy: str, training: bool) -> Plan:
    """Makes the plan of one engine: one host, a core per replica.

    `output_shapes` are those of features on one replica, without the width. Features have the names
    `feature_names(declared)`, in the order of plans, and room for weights, because any batch may
    have some. If the plan is for `training`, each table needs an optimizer.
    """
    tables = [table_spec(table, table.name, table.optimizer) for table in declared.tables]
    names = feature_names(declared)
    features = [
        FeatureSpec(name=name, table=feature.table.name, output_shape=tuple(shape),
                    weight_feature=name, id_policy=id_policy)
        for name, feature, shape in zip(names, declared.features, output_shapes)]
    # Every feature has its own batch size; the plan's batch size is only shown.
    batch = max((shape[0] for shape in output_shapes if shape), default=1)
    return resolve(tables, features, Topology(num_hosts=1, cores_per_host=replicas),
                   batch_size=batch * replicas, pipelined=pipelined,
                   mode='training' if training else 'inference')


def _problems(declared: Declared, names: Sequence[Any], optimizers: Sequence[Any],
              needs_optimizer: bool) -> Iterator[Problem]:
    tables = []
    for table, name, optimizer in zip(declared.tables, names, optimizers):
        where = f'table "{shown(name)}"'
        if optimizer is not None and not is_supported(optimizer) or (
                optimizer is None and needs_optimizer):
            yield Problem('E445', where, f'{type(optimizer)} is an unsupported optimizer class. '
                          'Please pass an instance of one of the optimizer classes under '
                          'tf.tpu.experimental.embedding.', remedy='SGD, Adagrad, '
                          'AdagradMomentum, FTRL and Adam train here.')
            optimizer = None
        if optimizer is not None and callable(optimizer.learning_rate) and not isinstance(
                optimizer.learning_rate, Hashable):
            yield from DynamicRate(function=optimizer.learning_rate).problems(where)
            optimizer = None
        if inspect.isclass(table.initializer):
            kind = table.initializer.__name__
            yield Problem('E495', where, 'initializer must be an instance, or a function',
                          f'the class {kind}', 'Call it, perhaps with arguments, as in '
                          f'initializer={kind}().')
        tables.append(table_spec(table, name, optimizer))
    name_of = {id(table): name for table, name in zip(declared.tables, names)}
    features = [FeatureSpec(name=name, table=name_of[id(feature.table)],
                            max_sequence_length=feature.max_sequence_length)
                for name, feature in zip(feature_names(declared), declared.features)]
    for problem in problems_of(tables, features, Topology(), batch_size=1, optimizer=None,
                               strategy='div', mode='inference'):
        if problem.code != 'E404':  # Reported below in the words of the original.
            yield problem
    yield from _name_clashes(names, optimizers)


def _name_clashes(names: Sequence[Any], optimizers: Sequence[Any]) -> Iterator[Problem]:
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        yield Problem('E404', f'table "{shown(name)}"', 'Tables must have a unique name. Multiple '
                      f'tables with name {name} found.')
    for name, optimizer in zip(names, optimizers):
        for slot in slot_names(optimizer) if is_supported(optimizer) else ():
            if f'{name}/{slot}' in names:
                yield Problem('E460', f'table "{shown(name)}/{slot}"', 'the name is that of the '
                              f'optimizer state of table "{shown(name)}"', remedy='Rename it.')


def table_spec(table: Any, name: Any, optimizer: Any) -> TableSpec:
    """Returns the `TableSpec` of a TableConfig, unchecked; `optimizer` is supported or `None`."""
    config = table.quantization_config
    rate = None if optimizer is None else rate_of(optimizer)
    return TableSpec(
        name=name, vocabulary_size=table.vocabulary_size, dimension=table.dim,
        combiner=table.combiner, initializer=table.initializer,
        optimizer=None if optimizer is None else core_optimizer(optimizer),
        rate=rate if isinstance(rate, DynamicRate) else None,
        quantization=None if config is None else Quantization(
            num_buckets=config.num_buckets, lower=config.lower, upper=config.upper))


def feature_label(path: str) -> str:
    """Returns the name of a feature of this path in messages."""
    return f'feature "{shown(path)}"' if path else 'the feature'


def config_of(declared: Declared, output_shapes: Sequence[tuple[int, ...]], *, num_hosts: int,
              num_cores: int, pipelined: bool) -> Config:
    """Encodes a declaration for a system of so many hosts and cores.

    A small table is raised to one row per host. The mode is always TRAINING, because the original
    tells the mode at each enqueue.
    """
    config = Config(mode=Config.TRAINING, num_hosts=num_hosts, num_tensor_cores=num_cores,
                    sharding_strategy=Config.DIV_DEFAULT,
                    pipeline_execution_with_tensor_core=pipelined)
    encode_tables([table_spec(table, table.name, table.optimizer) for table in declared.tables],
                  config)
    for table, descriptor in zip(declared.tables, config.table_descriptor):
        if table.optimizer is not None and table.optimizer.low_dimensional_packing_status:
            descriptor.optimization_parameters.low_dimensional_packing_status = (
                LowDimensionalPacking.ENABLED)
    ids = {id(table): number for number, table in enumerate(declared.tables)}
    for feature, shape in zip(declared.features, output_shapes):
        config.feature_descriptor.add(name=feature.name or '', table_id=ids[id(feature.table)],
                                      input_shape=shape)
    return config


_api = tf.tpu.experimental.embedding
_KINDS: dict[type, tuple[type[Optimizer], tuple[str, ...], Callable[[Any], dict[str, Any]]]] = {
    _api.SGD: (core.StochasticGradientDescent, (), lambda one: {}),
    _api.Adagrad: (core.Adagrad, ('accumulators',), lambda one: {
        'initial_accumulator': one.initial_accumulator_value}),
    _api.AdagradMomentum: (core.AdagradMomentum, ('accumulators', 'momenta'), lambda one: {
        'momentum': one.momentum, 'use_nesterov': one.use_nesterov, 'exponent': one.exponent,
        'beta2': one.beta2, 'epsilon': one.epsilon}),
    _api.FTRL: (core.Ftrl, ('accumulators', 'linears'), lambda one: {
        'l1': one.l1_regularization_strength, 'l2': one.l2_regularization_strength,
        'lr_power': one.learning_rate_power, 'beta': one.beta,
        'multiply_linear_by_lr': one.multiply_linear_by_learning_rate,
        'allow_zero_accumulator': one.allow_zero_accumulator,
        'initial_accumulator': one.initial_accumulator_value}),
    _api.Adam: (core.Adam, ('momenta', 'velocities'), lambda one: {
        'beta1': one.beta_1, 'beta2': one.beta_2, 'epsilon': one.epsilon,
        'use_non_lazy_adam': not one.lazy_adam, 'use_sum_inside_sqrt': one.sum_inside_sqrt}),
}
"""By class: its class in the core; the names of its slots on disk, in the order of the core's; and
what returns the hyper-parameters that only this class has, by their names in the core."""


@dataclasses.dataclass(frozen=True, slots=True)
class _IgnoringStep:
    """Makes a function of the step from one without arguments; equal if the functions are equal."""

    function: Callable[[], Any]

    def __call__(self, step: Any) -> Any:
        return self.function()


def is_supported(optimizer: object) -> bool:
    """Returns whether an object is one of the optimizers that can train a table."""
    return isinstance(optimizer, tuple(_KINDS))


def core_optimizer(optimizer: Any) -> Optimizer:
    """Returns the optimizer of the core with the same numbers, unchecked, of a supported one.

    Its learning rate is 0.0 if that of `optimizer` is callable; `rate_of` returns that rate. A
    decay of 0 means no decay, as in the proto.
    """
    made, _, numbers = _kind_of(optimizer)
    rate = optimizer.learning_rate
    return made(
        **numbers(optimizer), learning_rate=0.0 if callable(rate) else rate,
        accumulate=bool(optimizer.use_gradient_accumulation),
        clip_weights=Bounds(lower=optimizer.clip_weight_min, upper=optimizer.clip_weight_max),
        clip_gradients=Bounds(lower=optimizer.clip_gradient_min,
                              upper=optimizer.clip_gradient_max),
        decay=optimizer.weight_decay_factor or None,
        decay_times_rate=bool(optimizer.weight_decay_factor
                              and optimizer.multiply_weight_decay_factor_by_learning_rate))


def rate_of(optimizer: Any) -> Rate:
    """Returns the learning rate; equal functions, such as bound methods, give equal rates."""
    rate = optimizer.learning_rate
    if callable(rate):
        return DynamicRate(function=_IgnoringStep(rate))
    return ConstantRate(value=rate)


def slot_names(optimizer: Any) -> tuple[str, ...]:
    """Returns the names of the slots on disk, in the order of `core_optimizer(optimizer).slots`."""
    return _kind_of(optimizer)[1]


def _kind_of(optimizer: Any) -> Any:
    return next(kind for cls, kind in _KINDS.items() if isinstance(optimizer, cls))
