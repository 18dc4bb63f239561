"""Keeps the state of jobs on disk: saves, verifies, restores and deletes checkpoints.

Nothing else in this package writes below a model_dir, except TensorFlow's event files.

A save is read in the order saver, commit, integrity, manifest, removal, pointer. A restore is read
in the order recover, held, compare, restore. Both stand on file_names and storage.
"""
