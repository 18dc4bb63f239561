"""Frozen facts and arithmetic. Modules import NumPy only where they use it, and no TensorFlow."""
