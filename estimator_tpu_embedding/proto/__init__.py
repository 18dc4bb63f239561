"""Plans as bytes. Imports protobuf, never TensorFlow."""
