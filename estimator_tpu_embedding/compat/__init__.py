"""Restores import paths and names that TensorFlow removed, if `install()` is called."""
