"""Keeps the state of jobs on disk: saves, verifies, restores and deletes checkpoints.

Nothing else in this package writes below a model_dir, except event files and `graph.pbtxt`.

A save is read in the order saver_builder, saver, commit, storage, integrity, manifest. A restore is
read in the order recover, restore_plan, restore. Names of files are in file_names.
"""
