"""What a job declares, read from a config or from the Python objects of a TPUEstimator.

An object says more than a config. A config, which TF1 and TF2 both write, holds all numbers of
optimizers; it holds no combiner, initializer or function, and no name of a feature if TF1 wrote it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.learning_rates import ConstantRate, DynamicRate
from ..core.limits import MAX_NAME_LENGTH
from ..core.optimizers import Optimizer
from ..core.plan import Plan
from ..core.specs import FeatureSpec, TableSpec, Topology
from ..errors import ConfigError, Problem, counted, quoted, shown
from ..proto.codec import Config, batch_of, config_to_plan, plan_to_config

JOB = 'job'
"""The place of notes about the whole declaration."""


def place(kind: str, name: str) -> str:
    """Returns how notes call a table or a feature, such as `'table "video"'`."""
    return f'{kind} "{shown(name, MAX_NAME_LENGTH)}"'


def some(names: Sequence[str], noun: str = 'table') -> str:
    """Returns the first three names, and how many others there are.

    >>> some(['a', 'b', 'c', 'd'])
    'tables "a", "b", "c" and 1 other'
    """
    listed = f'{noun}{"" if len(names) == 1 else "s"} {quoted(map(shown, names[:3]))}'
    rest = len(names) - 3
    return f'{listed} and {counted(rest, "other")}' if rest > 0 else listed


def name_of(value: Any) -> str:
    """Returns where a function or the class of an object is defined, fit for a message.

    A `functools.partial` is called as its function.
    """
    while isinstance(value, functools.partial):
        value = value.func
    named = value if hasattr(value, '__qualname__') else type(value)
    return shown(f'{getattr(named, "__module__", "?")}.{named.__qualname__}', 200)


class Note(NamedTuple):
    """One thing that a maintainer must know of the new declaration."""

    where: str  # The table or feature, as of `place`; `JOB` for the whole declaration.
    fact: str  # The difference, or the gap.
    remedy: str = ''
    code: str = ''  # Of the error that it is with `--strict`; `''` for a mere remark.

    @property
    def problem(self) -> Problem:
        """The same as the problem of an error."""
        return Problem(self.code, self.where, self.fact, remedy=self.remedy)

    def __str__(self) -> str:
        """Returns the sentences of a comment, which stands beside the table or feature."""
        text = f'{self.fact[0].upper()}{self.fact[1:]}'
        return f'{text}{"" if text.endswith((".", "?")) else "."} {self.remedy}'.rstrip()


LOST = functools.partial(Note, code='E671')
"""The note of something that the target cannot say."""
NO_OPTIMIZER = functools.partial(Note, code='E672')
NOT_WRITABLE = functools.partial(Note, code='E673')
"""The note of a function or an object of a program."""


class Size(NamedTuple):
    """Samples of all cores per step, and the hosts and cores."""

    batch_size: int
    topology: Topology


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """All that a job declares.

    Attributes:
      tables: in any order, each with its optimizer, whose learning rate is the table's. If the rate
        is a function, `rate` of the spec holds it, and the rate of the optimizer is 0.0.
      features: in any order; each has its table in `tables`. Their names are the keys of the new
        declaration.
      knows_defaults: whether combiners, initializers and first values of slots are known. Configs
        do not hold them.
      unnamed: the features to which the job gave no name, as far as it is known.
      unsafe: the features whose look-ups on a CPU keep ids and weights that are not positive.
      multiplier: name of the function that multiplies gradients; `''` for none.
      notes: of what was read: facts that no target can say.
      config: the config that the job gives to the hardware, if it is known.
    """

    where: str  # Its place, fit for a message.
    tables: tuple[TableSpec, ...]
    features: tuple[FeatureSpec, ...]
    knows_defaults: bool = True
    unnamed: Collection[str] = ()
    unsafe: Collection[str] = ()
    is_tf2: bool = False
    size: Size | None = None
    pipelined: bool = False  # Whether look-ups run one step ahead of updates.
    strategy: str = 'div'
    profile_directory: str = ''  # For statistics of ids.
    multiplier: str = ''
    notes: tuple[Note, ...] = ()
    config: Config | None = None

    def sized(self, batch_size: int, topology: Topology) -> Declaration:
        """Returns the declaration with the size that it lacks: samples of all cores per step.

        Raises:
          ConfigError: if the job states its own sizes, or the cores do not divide the batch.
        """
        if self.size is not None:
            raise ConfigError(Problem(
                'E679', self.where, 'it states its batch size and its system itself, which '
                'arguments cannot change', f'--batch-size {batch_size}', 'Leave it out.'))
        problems = list(topology.problems()) or list(filter(None, [
            topology.batch_problem('--batch-size', batch_size)]))
        if problems:
            raise ConfigError(*problems)
        return dataclasses.replace(self, size=Size(batch_size, topology))


_OF_COLUMNS = 'tbl_'
"""How the names of tables begin that feature columns make."""

_UNKNOWN = Note(
    JOB, 'A config holds no combiners, initializers, weights and first values of slots',
    "Here are 'mean' and the defaults. Copy the others from the program of the job.")


def of_config(config: Config, where: str, others: Sequence[Config] = ()) -> Declaration:
    """Returns what a config declares; `others` are of the same job, for evaluation or prediction.

    Raises:
      ConfigError: with every problem for which it is no plan, such as a table of 0 rows.
      UnsupportedError: if the only problem is an optimizer whose formula is not documented.
    """
    plan = config_to_plan(_with_features(config))
    declared = {one.name for one in config.feature_descriptor if one.name}
    found = of_plan(plan, where)
    names = _names(plan.features, declared)
    is_sized = config.feature_descriptor or config.batch_size_per_tensor_core
    return dataclasses.replace(
        found, is_tf2=bool(declared), config=config, size=found.size if is_sized else None,
        tables=tuple(dataclasses.replace(one, combiner='mean') for one in found.tables),
        features=tuple(dataclasses.replace(one, name=name)
                       for one, name in zip(found.features, names)),
        knows_defaults=False, unnamed=set(names) - declared,
        notes=tuple(_notes_of_config(config, len(set(names) - declared), others)))


def _with_features(config: Config) -> Config:
    """Returns a config of TensorFlow 1.15 to 2.3, which lists no features, with one per table."""
    if config.feature_descriptor:
        return config
    found = Config()
    found.CopyFrom(config)
    found.ClearField('batch_size_per_tensor_core')
    for number, table in enumerate(found.table_descriptor):
        table.ClearField('num_features')
        found.feature_descriptor.add(
            table_id=number, input_shape=[max(config.batch_size_per_tensor_core, 1)])
    return found


def _names(features: Sequence[FeatureSpec], declared: Collection[str]) -> list[str]:
    """Returns a key for each feature: its own name, or one that is made from the table's."""
    many = collections.Counter(one.table for one in features if one.name not in declared)
    seen: collections.Counter[str] = collections.Counter()
    found: list[str] = []
    for one in features:
        name = one.name
        if name not in declared:
            seen[one.table] += 1
            name = one.table.removeprefix(_OF_COLUMNS) or one.table
            if many[one.table] > 1:
                name += f'_{seen[one.table]:0{len(str(many[one.table]))}}'
            while name in found or name in declared:
                name += '_'
        found.append(name)
    return found


def _notes_of_config(config: Config, unnamed: int, others: Sequence[Config]) -> Iterator[Note]:
    yield _UNKNOWN
    if unnamed:
        yield Note(JOB, f'The config has no names of {counted(unnamed, "feature")}', 'TF1 '
                   'writes none. Names here come from the tables. Put in the keys of the dict '
                   'that the dataset gives.')
    if config.mode == Config.INFERENCE:
        yield Note(JOB, 'The config is of a job that trains nothing: it has SGD with a rate of '
                   '1.0 for every table', 'Choose optimizers before you train.')
    if not config.feature_descriptor:
        yield Note(JOB, 'The config, of TensorFlow 2.3 or older, does not list its features',
                   'Here is one for each table, without sequences. Correct them.')
    raised = [one.name for one in config.table_descriptor
              if config.num_hosts > 1 and one.vocabulary_size == config.num_hosts]
    if raised:
        yield Note(JOB, f'The {counted(config.num_hosts, "row")} of {some(raised)} may be fewer '
                   'in the program: TensorFlow gives every host a row')
    batch = batch_of(config)
    sizes = sorted({batch_of(other) for other in others if other.feature_descriptor} - {batch})
    if sizes:
        yield LOST(JOB, f'Evaluation or prediction has {", ".join(map(str, sizes))} samples per '
                   f'core and training {batch}, but TPUEmbedding of TF2 has one batch size',
                   'Give both the same size.')


def of_object(value: Any, where: str) -> Declaration | None:
    """Returns what a `Plan`, `EmbeddingConfigSpec` or `TPUEmbedding` declares; `None` for others.

    Raises:
      ConfigError: with all problems of the declaration.
    """
    from ..compat import declarations
    if isinstance(value, Plan):
        return of_plan(value, where)
    if not declarations.is_declaration(value):
        return None
    declared = _of_spec(value, where) if declarations.is_spec(value) else of_plan(
        value.plan, where, {name: one.weight_key
                            for name, one in value.feature_to_config_dict.items()})
    if not declared.tables:
        raise ConfigError(Problem('E402', where, 'at least one table is needed', 'none'))
    problems = [problem for table in declared.tables for problem in table.problems()]
    problems += [problem for one in declared.features for problem in one.problems()]
    if problems:
        raise ConfigError(*problems)
    return declared


def _of_spec(spec: Any, where: str) -> Declaration:
    from ..compat import declarations
    tables, features = spec.to_specs()
    parameters = spec.optimization_parameters
    optimizer = None if parameters is None else parameters.to_optimizer()
    multiplier = spec.experimental_gradient_multiplier_fn
    return Declaration(
        where=where, tables=tuple(_trained(table, optimizer) for table in tables),
        features=tuple(features), unsafe=declarations.unsafe_features(spec),
        pipelined=bool(spec.pipeline_execution_with_tensor_core),
        strategy=spec.partition_strategy, profile_directory=spec.profile_data_directory or '',
        multiplier='' if multiplier is None else name_of(multiplier),
        notes=tuple(_notes_of_spec(spec, declarations.features_with_words(spec))))


def of_plan(plan: Plan, where: str, weight_keys: Mapping[str, str | None] | None = None
            ) -> Declaration:
    """Returns what a plan declares; `weight_keys` has that of each feature, if it is another."""
    features = plan.features if weight_keys is None else tuple(
        dataclasses.replace(one, weight_feature=weight_keys[one.name]) for one in plan.features)
    return Declaration(
        where=where, tables=tuple(_trained(table, None) for table in plan.tables),
        features=features,
        size=Size(plan.global_batch_size, plan.topology),
        pipelined=plan.pipelined, strategy=plan.strategy,
        profile_directory=plan.profile_directory, config=plan_to_config(plan))


def _trained(spec: TableSpec, common: Optimizer | None) -> TableSpec:
    """Returns a table with its optimizer, which takes the rate of the table."""
    optimizer, rate = spec.optimizer or common, spec.rate
    if optimizer is not None and rate is not None:
        optimizer = dataclasses.replace(
            optimizer, learning_rate=rate.value if isinstance(rate, ConstantRate) else 0.0)
    return dataclasses.replace(spec, optimizer=optimizer,
                               rate=rate if isinstance(rate, DynamicRate) else None)


def _notes_of_spec(spec: Any, with_words: list[str]) -> Iterator[Note]:
    if spec.clipping_limit is not None:
        yield Note(JOB, f'The spec has clipping_limit={spec.clipping_limit}, which has no effect',
                   'It is left out.')
    dense = [column.get_feature_key_name() for column in spec.tensor_core_feature_columns or []]
    if dense:
        yield LOST(JOB, f'The columns of {some(dense, "feature")} look up on the tensor core '
                   '(embedding_lookup_device)', 'Their tables are variables of the model. '
                   'TPUEmbeddingV0 is nearest to them.')
    if with_words:
        yield Note(JOB, f'The columns of {some(with_words, "feature")} map words to ids',
                   'A dict of features takes ids: map the words in the dataset.')
