"""Keeps the state of jobs on disk: saves, verifies, restores and deletes checkpoints.

Nothing else in this package writes below a model_dir, except TensorFlow's event files.
"""
