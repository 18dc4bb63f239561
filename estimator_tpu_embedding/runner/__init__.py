"""Runs training, evaluation and prediction, with their input threads, signals and deadlines."""
