"""Runs training, evaluation and prediction; owns their threads, signals and deadlines."""
