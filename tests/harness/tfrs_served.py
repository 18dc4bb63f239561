"""Calls the functions of SavedModels with TensorFlow alone, and compares what they return.

    python -m harness.tfrs_served FOLDER

FOLDER has `predictions.npy`, those for the batch `PREDICTED`, and SavedModels. This process has
neither the package nor TFRS.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf
from harness import tfrs_models as models

PREDICTED = 3


def main(folder):
    """Prints the names of the functions of each SavedModel; all have given the predictions."""
    predictions = np.load(f'{folder}/predictions.npy')
    for path in sorted(pathlib.Path(folder).glob('*/saved_model.pb')):
        loaded = tf.saved_model.load(str(path.parent))
        for name, function in sorted(loaded.signatures.items()):
            taken = function.structured_input_signature[1]
            users = taken.get('user', taken.get('args_0'))
            size = users.shape[0] or models.BATCH
            found, = function(**_inputs(taken, size)).values()
            np.testing.assert_allclose(found, predictions[:size], 1e-6, 1e-6)
            print(path.parent.name, name, size)
    assert not {'estimator_tpu_embedding', 'tensorflow_recommenders'} & set(sys.modules)


def _inputs(names, size):
    """The first samples of the batch, by names; those of Keras count the parts of a model's inputs.
    """
    users, videos, _ = models.samples(PREDICTED)
    sparse = models.dense_to_sparse(videos[:size])
    given = {'user': users[:size], 'video': videos[:size], 'args_0': users[:size],
             'args_0_1': sparse.indices, 'args_0_2': sparse.values, 'args_0_3': sparse.dense_shape}
    return {name: tf.constant(given[name]) for name in names}


if __name__ == '__main__':
    main(sys.argv[1])
