"""The TF2 face: TPUEmbedding and the emulated TPUStrategy."""
