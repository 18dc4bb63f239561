"""The `etpe` tool. Starts without TensorFlow."""
