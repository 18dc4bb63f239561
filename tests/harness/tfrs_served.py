"""Calls the functions of SavedModels with TensorFlow alone, and compares what they return.

    python -m harness.tfrs_served FOLDER

FOLDER has `served.npz` with the inputs of a batch and the predictions for it, and SavedModels. This
process has neither this package nor TFRS.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf


def main(folder):
    """Prints the names of the functions of each SavedModel, which give these predictions."""
    given = dict(np.load(f'{folder}/served.npz'))
    predictions = given.pop('predictions')
    for path in sorted(pathlib.Path(folder).glob('*/saved_model.pb')):
        loaded = tf.saved_model.load(str(path.parent))
        for name, function in loaded.signatures.items():
            taken = function.structured_input_signature[1]
            size = next(iter(taken.values())).shape[0] or len(predictions)
            inputs = {key: tf.constant(given[key][:size]) for key in taken}
            found, = function(**inputs).values()
            np.testing.assert_allclose(found, predictions[:size], 1e-6, 1e-7)
            print(path.parent.name, name, *sorted(taken))
    assert not {'estimator_tpu_embedding', 'tensorflow_recommenders'} & set(sys.modules)


if __name__ == '__main__':
    main(sys.argv[1])
