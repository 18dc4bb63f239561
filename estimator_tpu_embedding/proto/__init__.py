"""Reads and writes configs and profiles as protobuf messages, without TensorFlow."""
