"""Keeps state on disk; nothing else writes below model_dir but TensorFlow's event files."""
