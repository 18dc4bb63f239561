"""Says what a checkpoint of TF1 holds that has a table for each optimizer which TF2 has too.

It needs TensorFlow of any version only, since a golden is made of it by TensorFlow 2.15.
"""

import zlib

import numpy as np

SUFFIXES = {
    'sgd': [], 'a/b.c': ['Adagrad'],
    'momentum': ['AdagradMomentum/Accumulator', 'AdagradMomentum/Momentum'],
    'ftrl': ['Ftrl', 'Ftrl_1'], 'adam': ['Adam/m', 'Adam/v']}
"""The slots of each table. The tables are those of `harness.tf2_tables`."""
LOST = {
    'p/momentum': ['Momentum'], 'rms': ['RMSProp/ms', 'RMSProp/mom'],
    'proximal': ['ProximalAdagrad'], 'yogi': ['ProximalYogi', 'ProximalYogi_1'],
    'frequency': ['FrequencyEstimator']}
"""Tables whose optimizers TF2 lacks, with their slots."""
OPTIMIZERS = dict(zip([*SUFFIXES, *LOST], [
    'StochasticGradientDescent', 'Adagrad', 'AdagradMomentum', 'Ftrl', 'Adam', 'Momentum',
    'RMSProp', 'ProximalAdagrad', 'ProximalYogi', 'FrequencyEstimator']))
"""The optimizer of each table, as `harness.declarations` calls it."""
SLOTS = {'Adagrad': 'accumulators', 'AdagradMomentum/Accumulator': 'accumulators',
         'AdagradMomentum/Momentum': 'momenta', 'Ftrl': 'accumulators', 'Ftrl_1': 'linears',
         'Adam/m': 'momenta', 'Adam/v': 'velocities'}
"""The name of each slot in TF2."""
STEP, WIDTH = 7, 2
ROWS = {table: 7 + number for number, table in enumerate(OPTIMIZERS)}
HOSTS = (1, 2, 3, 5)
LINES = '\n'.join([*(f'table {table} -> {table}' for table in OPTIMIZERS),
                   're (dense/.*) -> model/\\1'])
LINES_BACK = 're model/(dense/.*) -> \\1'
"""Maps from TF1 to TF2, and back."""
DENSE = {'dense/kernel': 3, 'dense/bias': 1}
"""The rows of other variables, which `tf.train.AdamOptimizer` trains."""


def width_of(table):
    """The width of a table; TensorFlow wants 1 for FrequencyEstimator."""
    return 1 if table == 'frequency' else WIDTH


def value_of(tensor, ids, width=WIDTH):
    """The rows of ids of a tensor, float32 `[n, width]`; no other id or tensor has them."""
    first = 1 + zlib.crc32(tensor.encode()) % 1000
    return (first + np.asarray(ids)[:, None] / 8 + np.arange(width) / 128).astype(np.float32)


def ids_on(host, hosts, strategy, rows):
    """The ids of which a host has the rows, in order."""
    if strategy == 'mod':
        return np.arange(rows)[host::hosts]
    return np.array_split(np.arange(rows), hosts)[host]


def slices(tensor, rows, strategy='div', hosts=1, width=WIDTH):
    """The rows of a tensor as each host has them; an array if there is one host."""
    hosts = min(hosts, rows)
    found = [value_of(tensor, ids_on(host, hosts, strategy, rows), width)
             for host in range(hosts)]
    return found if hosts > 1 else found[0]


def tensors(strategy='div', hosts=1, suffixes=None):
    """All tensors of the checkpoint, by name, as `harness.forged.write` takes them."""
    found = {'global_step': np.int64(STEP)}
    for number, (table, own) in enumerate((suffixes or SUFFIXES).items()):
        for tensor in (table, *(f'{table}/{suffix}' for suffix in own)):
            found[tensor] = slices(tensor, 7 + number, strategy, hosts, width_of(table))
    for name, rows in DENSE.items():
        for tensor in (name, f'{name}/Adam', f'{name}/Adam_1'):
            found[tensor] = slices(tensor, rows, width=1)
    return found | {'beta1_power': np.float32(.9**8), 'beta2_power': np.float32(.999**8)}


def rows_of_tf2(suffixes=None):
    """Tables and slots as `harness.replicas.values_of` gives them of a TPUEmbedding."""
    return {table: {'parameters': value_of(table, range(7 + number)), **{
        SLOTS[suffix]: value_of(f'{table}/{suffix}', range(7 + number)) for suffix in own}}
        for number, (table, own) in enumerate((suffixes or SUFFIXES).items())}
