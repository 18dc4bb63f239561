"""Keeps small checkpoints in files, for processes that commit them without TensorFlow."""

import dataclasses
import pathlib

from harness.checkpoints import VALUES, describe

COUNT = 4
"""So many checkpoints of different values there are; steps take turns."""


@dataclasses.dataclass(frozen=True)
class Tiny:
    """Checkpoints of any step, of two shards; no two steps have the same files.

    Attributes:
      directory: where `make` wrote them.
    """

    directory: str

    def files(self, step):
        """`{suffix: content}` of all files but the manifest."""
        prefix = str(step % COUNT)
        found = {path.name.removeprefix(prefix): path.read_bytes()
                 for path in sorted(pathlib.Path(self.directory).glob(f'{prefix}.*'))}
        return {**found, '.meta': b'graph of step %d' % step}

    def write(self, step, one=lambda path, content: pathlib.Path(path).write_bytes(content)):
        """A callback for `commit` that writes the files of a step, each by a call of `one`.

        As TensorFlow does, it has a folder beside them meanwhile.
        """
        def write(prefix):
            folder = pathlib.Path(f'{prefix}_temp')
            folder.mkdir()
            for suffix, content in self.files(step).items():
                one(prefix + suffix, content)
            folder.rmdir()
        return write

    def manifest(self, step):
        """A callback for `commit`."""
        return describe(step)

    def is_at(self, prefix, step):
        """Returns whether the files of a prefix equal those of a step, byte for byte."""
        return self.files(step) == {
            path.name.removeprefix(f'model.ckpt-{step}'): path.read_bytes()
            for path in pathlib.Path(prefix).parent.glob(f'model.ckpt-{step}.*')
            if '.tables.json' not in path.name} and prefix.endswith(f'model.ckpt-{step}')


def make(directory):
    """Has TensorFlow write the checkpoints, each host its rows into a file of its own."""
    import tensorflow.compat.v1 as tf
    with tf.Graph().as_default(), tf.Session() as session:
        for number in range(COUNT):
            shards = [f'{directory}/{number}-{host}' for host in (0, 1)]
            for shard, first, stop in zip(shards, (0, 4), (4, 7)):
                rows = VALUES[first:stop] + number
                session.run(tf.raw_ops.SaveV2(
                    prefix=shard, tensor_names=['t', 't/Adagrad'], tensors=[rows, 10 * rows],
                    shape_and_slices=[f'7 2 {first},{stop - first}:0,2'] * 2))
            session.run(tf.raw_ops.MergeV2Checkpoints(
                checkpoint_prefixes=shards, destination_prefix=f'{directory}/{number}'))
    return Tiny(str(directory))
