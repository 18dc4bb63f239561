"""Builds the engines that `cluster.py` times: one for all hosts, or an owner per host.

    python cluster_engines.py WORKLOAD SHRINK HOSTS GBIT

is run inside of network namespaces by `networks.py`, and serves one engine to `cluster.py`.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

import networks
import numpy as np
import tensorflow.compat.v1 as tf
from exchange_model import ALL, Link
from ours import plan_of
from sessions import Engine, config_of

from estimator_tpu_embedding.cluster.cluster import Cluster
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.hosts.backend import Backend
from estimator_tpu_embedding.hosts.engine_choice import choose_engine
from estimator_tpu_embedding.hosts.placement import Placement, on
from estimator_tpu_embedding.ops.ids import IdBatch

STRATEGY = 'mod'
SECONDS_TO_START = 60
_MESSAGES = 256
_LONG = 2**22
"""Numbers of a long message."""


class HostsEngine(Engine):
    """An engine of several hosts with one core each, which look up a part of the batch each.

    The ids of a host come from a dataset in its memory, or in that of the client.

    Attributes:
      plan: of the engine.
    """

    def __init__(self, workload, hosts, *, has_owners, cluster=None, input_at_client=False):
        """Builds it.

        Args:
          workload: see `workloads.py`; the batch is a multiple of `hosts`.
          hosts: their number.
          has_owners: whether each host is an owner of its rows; otherwise one engine has all.
          cluster: of workers, one per host, prepared; `None` is this process.
          input_at_client: whether the client draws the ids, as it does for jobs.
        """
        self.plan = plan_of(workload, hosts=hosts, strategy=STRATEGY)
        placement = Placement(self.plan.topology, is_remote=cluster is not None)
        inputs = [placement.client if input_at_client else placement.core(core)
                  for core in range(hosts)]
        feeds = workload.feeds()
        with tf.Graph().as_default(), on(placement.client):
            backend = Backend(choose_engine(
                self.plan, {table.name: table.name for table in self.plan.tables},
                placement=placement if has_owners else None), tf.train.create_global_step())
            enqueues, starts = [], []
            for core in range(hosts):
                with on(inputs[core]):
                    iterator = tf.data.make_initializable_iterator(
                        _part(workload, feeds, core, hosts))
                    ids = iterator.get_next()
                starts.append(iterator.initializer)
                with on(placement.core(core)):
                    enqueues.append(backend.enqueue(self._batch(workload, ids), core=core))
            activations, receipts = zip(*[backend.lookup(core=core) for core in range(hosts)])
            step = tf.group(backend.update(receipts, activations))
            config = config_of('tuned')
            self._session = tf.Session('' if cluster is None else cluster.target,
                                       config=config if cluster is None else cluster.config(config))
            self._session.run([tf.global_variables_initializer(), starts])
            self._session.run(backend.engine.open())
            self._session.run(backend.engine.load())
            self._whole = None
            self._enqueue = self._session.make_callable(tf.group(*enqueues))
            self._step = self._session.make_callable(step)

    def _batch(self, workload, ids):
        size = self.plan.batch_size_per_core
        return {f'f{number:03}': IdBatch(
            tf.constant(workload.samples(feature)[:size * feature.per_sample]), of_feature, size)
            for number, (feature, of_feature) in enumerate(zip(workload.features, ids))}


def workload_of(workload, shrink, hosts):
    """A workload whose batch is a multiple of the number of hosts."""
    shrunk = workload.shrunk(shrink)
    return shrunk._replace(batch=max(shrunk.batch // hosts, 1) * hosts)


def _part(workload, feeds, core, hosts):
    """The ids of one core, batch by batch, as a dataset in memory."""
    return tf.data.Dataset.from_tensor_slices(tuple(
        np.stack([np.split(batch[number], hosts)[core] for batch in feeds])
        for number in range(len(workload.features)))).repeat()


@contextlib.contextmanager
def workers_at(addresses, before=lambda host: ()):
    """While the body runs, a worker listens at each address; yields its cluster, prepared.

    Args:
      addresses: of the workers.
      before: (host) -> the beginning of the command line that starts its worker.
    """
    processes = []
    try:
        for host, address in enumerate(addresses):
            processes.append(subprocess.Popen(
                [*before(host), sys.executable, '-m', 'estimator_tpu_embedding', 'worker',
                 '--listen', address, '--expose'], stdout=subprocess.DEVNULL,
                preexec_fn=networks.die_with_parent))
        cluster = Cluster(ClusterChoice(tuple(addresses), expose=True,
                                        connect_deadline=SECONDS_TO_START), say=lambda line: None)
        cluster.prepare()
        yield cluster
    finally:
        for process in processes:
            process.kill()
            process.wait()


def link_of(cluster):
    """Measures what messages from worker 0 to worker 1 cost.

    Args:
      cluster: of two workers or more, prepared.
    """
    placement = Placement(Topology(num_hosts=cluster.num_hosts), is_remote=True)
    with tf.Graph().as_default():
        with on(placement.host(0)):
            values = [tf.get_variable(f'v{number}', [count], use_resource=True).read_value()
                      for number, count in enumerate([1] * _MESSAGES + [_LONG])]
        with on(placement.host(1)):  # A sum needs the numbers there.
            few, many, long = [tf.add_n([value[0] for value in some]) for some in (
                values[:1], values[:-1], values[-1:])]
        with tf.Session(cluster.target, config=cluster.config()) as session:
            session.run(tf.global_variables_initializer())
            seconds = [_seconds_of(session.make_callable(one)) for one in (few, many, long)]
    return Link((seconds[1] - seconds[0]) / (_MESSAGES - 1),
                4 * _LONG / (seconds[2] - seconds[0]))


def _seconds_of(call, warm_up=3, times=15):
    found = []
    for _ in range(warm_up + times):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return statistics.median(found[warm_up:])


def serve(workload, hosts, gbit):
    """Answers each line of the input, a number of steps, by a line of JSON: milliseconds per step,
    and the bytes per step that each worker sent and received.
    """
    addresses, before = networks.made(hosts, gbit)
    with workers_at(addresses, before) as cluster:
        engine = HostsEngine(workload, hosts, has_owners=True, cluster=cluster)
        link = link_of(cluster)
        print(json.dumps([link, networks.gbit_of_socket(before)]), flush=True)
        for line in sys.stdin:
            steps, first = int(line), networks.counted(hosts)
            milliseconds = engine.window('ahead', steps)
            # A window has one step more than it times.
            moved = (np.array(networks.counted(hosts)) - first) / (steps + 1)
            print(json.dumps([milliseconds, moved.tolist()]), flush=True)


if __name__ == '__main__':
    _, name, shrink, count, gbit_of_link = sys.argv
    serve(workload_of(ALL[name], int(shrink), int(count)), int(count), float(gbit_of_link))
    os._exit(0)  # A server of TensorFlow never ends.
