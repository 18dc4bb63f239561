"""Replaces functions and sessions of TensorFlow that need a TPU by those of the emulated system.

Connecting does nothing, and sessions at a TPU are sessions of this process or of its workers.
Infeed, outfeed and loops of a TPU are refused as soon as a script builds them. TensorFlow has the
operations, but no CPU kernels for them: it would report this only when they run, or not at all. A
graph that is imported only to be looked at may hold them. An export for a TPU is refused when it is
loaded.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any, NoReturn

import tensorflow as tf

from .. import _tf, defaults
from ..cluster.cluster import current
from ..cluster.server import Target
from ..errors import ConfigError, Problem, UnsupportedError, shown
from ..estimator import tf_tpu, tpu_addresses
from ..hosts.tpu_system import tpu_topology
from ..midlevel.replicas import forget_initialized
from ..runner import towers
from ..runner.progress import announce
from . import import_paths, refused_names
from .environment import COLAB_ADDRESS
from .resolver import TPUClusterResolver, devices_listed

_REMEDY = ('Give a step the tensors of an iterator as inputs of tf.tpu.shard, fetch what it '
           'returns, and call session.run for each step.')


def put_in_place() -> None:
    """Replaces functions in every module that has them, and the sessions of this process."""
    # TensorFlow's own would sum the n-th gradients of all cores, whatever their variables are.
    tf.compat.v1.tpu.CrossShardOptimizer.apply_gradients = (
        tf_tpu.CrossShardOptimizer.apply_gradients)
    _tf.tpu_ops_modules()[0].cross_replica_sum = tf_tpu.cross_replica_sum
    module = _tf.modules_of_contrib()['tpu']
    module.split_compile_and_replicate = tf_tpu.split_compile_and_replicate
    module.initialize_system = tf_tpu.initialize_system
    module.shutdown_system = tf_tpu.shutdown_system
    import_paths.put('tpu', import_paths.V1_ROOTS, cross_replica_sum=tf_tpu.cross_replica_sum,
                     initialize_system=tf_tpu.initialize_system,
                     shutdown_system=tf_tpu.shutdown_system)
    connect_nowhere()
    _refuse_feeds()
    for loader in _tf.saved_model_loaders():
        loader.load = _on_cpu(loader.load)
    open_sessions_here()


def connect_nowhere() -> None:
    """Makes connecting to a TPU do nothing, and lists the cores of the emulated system."""
    for path, functions in connecting().items():
        import_paths.put(path, **functions)
    for path in ('config', 'config.experimental'):
        import_paths.put(path, **devices_listed())


def contact_workers() -> None:
    """Finds or starts the workers that `install()` chose, and announces them.

    The first lines of a script tell of them. Workers that a script names itself are found when its
    first job begins.

    Raises:
      The errors of `Cluster.prepare`.
    """
    choice = defaults.current().cluster
    if choice.is_used:
        current(choice, announce).prepare()


def connecting() -> dict[str, dict[str, Callable[..., Any]]]:
    """Returns the functions that connect to a TPU, by their path below `tf` and name."""
    experimental, config = tf.tpu.experimental, tf.config
    return {
        'tpu.experimental': {
            'initialize_tpu_system': _for_emulated(
                experimental.initialize_tpu_system, (None,), _initialized),
            'shutdown_tpu_system': _for_emulated(
                experimental.shutdown_tpu_system, (None,), lambda _: forget_initialized())},
        'config': {  # No process listens.
            'experimental_connect_to_cluster': _for_emulated(
                config.experimental_connect_to_cluster, (), lambda _: None),
            'experimental_connect_to_host': _for_emulated(
                config.experimental_connect_to_host, ('',), lambda _: None)}}


def _for_emulated(function: Any, also: tuple[str | None, ...], emulated: Callable[[Any], Any]
                  ) -> Callable[..., Any]:
    """Returns a function that calls `emulated` or the original.

    It calls `emulated` if the first argument means the emulated system or is one of `also`.
    """
    original = inspect.unwrap(function)  # An earlier install() may have been here.

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = next(iter((*args, *kwargs.values())), None)
        if _is_emulated(given) or given in also:
            return emulated(given)
        return original(*args, **kwargs)

    return call


def _is_emulated(given: Any) -> bool:
    """Whether an argument is a resolver of this package, its cluster or an address of a TPU."""
    return isinstance(given, (TPUClusterResolver, tpu_addresses.EmulatedCluster)) or (
        tpu_addresses.is_of_tpu(given))


def open_sessions_here() -> None:
    """Makes every session at the address of a TPU a session of this process, or of its workers.

    Sessions of graphs with tables on workers are opened there, too.
    """
    tpu_addresses.remember(COLAB_ADDRESS)
    cls = _tf.session_class()
    original = inspect.unwrap(cls.__init__)  # An earlier install() may have been here.

    @functools.wraps(original)
    def start(self: Any, target: Any = '', graph: Any = None, config: Any = None) -> None:
        _tf.mark_unopened(self)
        cluster = None
        if isinstance(target, Target):
            pass  # At a worker, which is no TPU.
        elif (cluster := tpu_addresses.cluster_of_session(target, graph)) is not None:
            target = cluster.target
            config = cluster.config(tf.compat.v1.ConfigProto() if config is None else config)
        elif tpu_addresses.is_of_tpu(target):
            target = ''
        elif tpu_addresses.has_port_of_tpu(target):
            tf.compat.v1.logging.warning('%s', Problem(
                'W930', 'tf.Session', 'TPUs are emulated in this process, but the session asks the '
                'address that it was given', shown(repr(target)),
                'Open it at the master() of a TPUClusterResolver, or at "".'))
        original(self, target, graph, config)
        if cluster is not None:
            cluster.guard(self)

    cls.__init__ = start


def _initialized(resolver: Any) -> Any:
    """Permits another TPUEmbedding, and returns the topology, as a TPU does."""
    forget_initialized()
    return tpu_topology(defaults.system_of(resolver).topology)


def _refuse_feeds() -> None:
    """Replaces the functions that build infeed, outfeed and loops."""
    handwritten, generated = _tf.tpu_ops_modules()
    for operation in refused_names.FEED_OPERATIONS:
        function = next(name for name in vars(generated)
                        if name.replace('_', '') == operation.lower() and name != operation)
        for module, name in ((generated, function), (handwritten, function),
                             (generated, operation)):
            setattr(module, name, _refused(operation, getattr(module, name)))
        import_paths.put('raw_ops', **{operation: getattr(generated, operation)})
    loops = _tf.modules_of_contrib()['training_loop']
    for name in ('while_loop', 'repeat'):
        setattr(loops, name, _on_one_core(getattr(loops, name)))


def _refused(operation: str, function: Callable[..., Any]) -> Callable[..., NoReturn]:
    """Returns a function that raises an error instead of building an operation."""
    @functools.wraps(inspect.unwrap(function))
    def refuse_it(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(_problem(operation))

    return refuse_it


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that loads a graph of a SavedModel, unless only a TPU can run it."""
    original = inspect.unwrap(function)  # An earlier install() may have been here.

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
        loader = given['self']
        found = loader.get_meta_graph_def_from_tags(given['tags'])
        graph, operation = found.graph_def, 'TPUPartitionedCall'
        nodes = itertools.chain(graph.node, *(each.node_def for each in graph.library.function))
        if any(node.op == operation for node in nodes) and not _tf.has_kernel(operation):
            tags = [sorted(each.meta_info_def.tags) for each in loader.saved_model.meta_graphs]
            raise UnsupportedError(Problem(
                'E942', f'SavedModel {shown(loader.export_dir, 1000)}',
                f'its graph with the tags {shown(sorted(found.meta_info_def.tags))} needs a TPU',
                'a TensorFlow without TPU',
                'Load the graph with the tag "serve".' if ['serve'] in tags else
                'Export it without export_to_cpu=False: then it also has a graph for CPUs.'))
        return original(*args, **kwargs)

    return load


def _problem(where: str) -> Problem:
    return Problem('E925', where, 'there is no infeed and no outfeed here: the emulated cores read '
                   'and give tensors of the graph', remedy=_REMEDY)


def _on_one_core(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of `training_loop` that refuses loops that cannot run here."""
    original = inspect.unwrap(function)

    @functools.wraps(original)
    def build(*args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
        if given.get('infeed_queue') is not None:
            raise UnsupportedError(_problem(f'training_loop.{original.__name__}'))
        try:
            return original(*args, **kwargs)
        except ConfigError as error:
            if error.code != 'E456':
                raise
            raise UnsupportedError(Problem(
                'E926', f'training_loop.{original.__name__}', 'a loop within the graph trains on '
                'one core only', f'{towers.number_of_cores()} cores', 'Leave the loop out: call '
                'session.run for each step, in a loop of Python.')) from None

    return build
