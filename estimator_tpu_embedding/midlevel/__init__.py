"""The TF2 face: TPUEmbedding over the engine of this package, and the emulated TPUStrategy."""
