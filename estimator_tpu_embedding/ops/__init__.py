"""Tensors in, tensors out, in stock TensorFlow ops. No sessions, no variables made, no hosts."""
