"""Reads and writes configs as protobuf messages, without TensorFlow."""
