"""The census job before its migration and after it, as the sides of `etpe migrate check`.

  etpe migrate checkpoint old/model.ckpt-300 tf2 --to tf2 --map census_migrated_tf2.map

  etpe migrate check py:census_sides:old py:census_sides:new --steps 20 \
      --checkpoint old/model.ckpt-300 --checkpoint-b tf2 --map census_migrated_tf2.map

  etpe migrate checkpoint old/model.ckpt-300 tfrs --to tfrs --map census_migrated_tfrs.map \
      --object-path model/layer_with_weights-0 --optimizer-path model/optimizer --slots midlevel

  etpe migrate check py:census_sides:old py:census_sides:new_keras --steps 20 \
      --checkpoint old/model.ckpt-300 --checkpoint-b tfrs --map census_migrated_tfrs.map
"""

from estimator_tpu_embedding.migration import EstimatorSide, KerasSide, LoopSide


def old():
  """The TPUEstimator."""
  import census_tpu_job
  return EstimatorSide(census_tpu_job.make_estimator, census_tpu_job.make_input_fn(True))


def new():
  """The loop of TensorFlow 2."""
  import census_migrated_tf2
  trainer = census_migrated_tf2.Trainer()
  return LoopSide(trainer.checkpoint, census_migrated_tf2.distribute(trainer.strategy, True),
                  lambda batch: trainer.train(batch))


def new_keras():
  """The model with the layer of TFRS."""
  import census_migrated_tf2
  import census_migrated_tfrs
  strategy = census_migrated_tf2.make_strategy()
  model, checkpoint = census_migrated_tfrs.make_model(strategy)
  return KerasSide(checkpoint, model, census_migrated_tf2.distribute(strategy, True))
