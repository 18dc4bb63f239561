"""Tasks of a cluster in this process: servers of TensorFlow, which sessions reach as any other."""

import contextlib
import functools
from unittest import mock

import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.estimator import tpu_estimator
from estimator_tpu_embedding.hosts.placement import CLIENT_JOB, HOST_JOB

from .network import require_private_network


@functools.cache
def _server(number):
    """The server of a task. It cannot end, so all tests share it."""
    require_private_network()
    return tf.distribute.Server({'etpe_boot': ['127.0.0.1:0']}, job_name='etpe_boot',
                                task_index=0)


def _address(number):
    return _server(number).target.removeprefix('grpc://')


class Tasks:
    """A cluster as `cluster.cluster.Cluster` describes it, whose tasks live in this process."""

    is_remote = True

    def __init__(self, count):
        """Has a client and `count` hosts."""
        self.num_hosts, self.target = count, _server(0).target
        self.prepared, self.admitted, self.loss = 0, [], None

    def config(self, config):
        config = tf.ConfigProto.FromString(config.SerializeToString())
        config.isolate_session_state = True
        config.cluster_def.CopyFrom(tf.train.ClusterSpec({
            CLIENT_JOB: [_address(0)],
            HOST_JOB: [_address(1 + host) for host in range(self.num_hosts)],
        }).as_cluster_def())
        return config

    def prepare(self):
        self.prepared += 1

    def require_resources(self, tables, directory='', checkpoint='', resident=None):
        self.admitted.append((tables, directory, checkpoint))

    def guard(self, session):
        pass

    def answers(self):
        return 'hosts answered at once'

    def lost(self, error):
        self.loss = error


class Owners(Tasks):
    """The same hosts as owners in this process, without tasks."""

    is_remote, target = False, ''

    def __init__(self, count):
        self.num_hosts, self.prepared, self.admitted, self.loss = count, 0, [], None

    def config(self, config):
        return config


@contextlib.contextmanager
def hosted_by(cluster):
    """While the body runs, the jobs of a TPUEstimator have this cluster; `None` is one process."""
    job = tpu_estimator.Job
    with mock.patch.object(tpu_estimator, 'Job', lambda **fields: job(
            **{**fields, 'cluster': cluster})):
        yield
