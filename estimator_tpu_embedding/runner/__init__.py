"""Turns a plan, an input_fn and a model_fn into steps. Owns threads, signals and deadlines."""
