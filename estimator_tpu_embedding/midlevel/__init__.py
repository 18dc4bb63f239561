"""`tf.tpu.experimental.embedding.TPUEmbedding` of TF2, over the engine of this package."""
