"""A script of TF2, written for a TPU, runs unedited and trains what NumPy says."""

import re

import numpy as np
import pytest
from harness.processes import ROOT, run_etpe

SCRIPT = ROOT / 'tests' / 'scripts' / 'tf2_tpu_embedding.py'


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Reference:
    """The job of the script on one machine, batch by batch."""

    def __init__(self):
        self.video, self.user = np.full([20, 4], .5), np.full([8, 4], .25)
        self.accumulators = np.full([8, 4], .1)
        self.kernel, self.bias = np.ones(8), 0.

    def step(self, number, *, training):
        """The loss of one global batch."""
        n = np.arange(16 * number, 16 * (number + 1)) % 48
        first, second, user, labels = n % 20, (3 * n + 1) % 20, n % 8, n % 2
        x = np.hstack([(self.video[first] + self.video[second]) / 2, self.user[user]])
        p = sigmoid(x @ self.kernel + self.bias)
        loss = -np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p))
        if training:
            wrong = (p - labels) / 16
            of_x = wrong[:, None] * self.kernel
            for ids in (first, second):
                np.add.at(self.video, ids, -.1 * of_x[:, :4] / 2)
            gradient = np.zeros_like(self.user)
            np.add.at(gradient, user, of_x[:, 4:])
            self.accumulators += gradient ** 2
            self.user -= .1 * gradient / np.sqrt(self.accumulators)
            self.kernel, self.bias = self.kernel - .1 * x.T @ wrong, self.bias - .1 * wrong.sum()
        return loss


def test_a_script_of_tf2_trains_evaluates_and_saves_on_two_hosts_of_two_cores(tmp_path):
    done = run_etpe('run', '--hosts', 2, '--cores', 2, SCRIPT, '--tpu', 'grpc://10.0.0.2:8470',
                    '--model_dir', tmp_path, loaded=True)
    assert done.returncode == 0
    replicas, keys, loss, sums = done.stdout.splitlines()
    assert replicas == '4 replicas, 10 steps'
    assert keys == 'embedding/user embedding/user.Saccumulators embedding/video'
    reference = Reference()
    for number in range(10):
        reference.step(number, training=True)
    expected = np.mean([reference.step(number, training=False) for number in range(10, 13)])
    assert float(loss.removeprefix('loss ')) == pytest.approx(expected, abs=2e-4)
    np.testing.assert_allclose(list(map(float, sums.split())), [
        reference.user.sum(), reference.accumulators.sum(), reference.video.sum()], atol=5e-4)
    # 10 steps are trained in two calls, and 3 evaluated.
    rate = r'by TPUEmbedding, [\d,]+ examples/s'
    assert re.search(rf'\[etpe\] in all: train 10 steps {rate}; '
                     rf'evaluate or predict 3 steps {rate}; native kernels\n', done.stderr)
