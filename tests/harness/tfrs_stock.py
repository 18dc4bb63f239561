"""Restores with stock TFRS what was saved under an emulated TPU, trains on, and saves that.

    python -m harness.tfrs_stock FOLDER

FOLDER has a folder for each case of `tfrs_checkpoint_test`. This process lacks the package.
"""

import pathlib
import sys

import tensorflow as tf
from harness import tfrs_models as models


def main(folder):
    """Checks every case, and leaves its own checkpoints in `stock` below it."""
    strategy = tf.distribute.get_strategy()
    for case in sorted(pathlib.Path(folder).iterdir()):
        kind, shape, _ = case.name.split(', ')
        for index in sorted(case.glob('*.index')):
            for built in False, True:
                model, optimizer = models.make(kind, shape == 'functional')
                if built:
                    models.build(model, optimizer, strategy)
                status = models.restore(str(index.with_suffix('')), model, optimizer)
                models.build(model, optimizer, strategy)
                models.require_restored(case, status, model)
        models.trainer(model, optimizer, strategy)(2)
        stock = case / 'stock'
        stock.mkdir()
        models.save(stock, model, optimizer)
    assert 'estimator_tpu_embedding' not in sys.modules


if __name__ == '__main__':
    main(sys.argv[1])
