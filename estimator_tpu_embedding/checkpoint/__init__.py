"""State on disk: the only folder that writes below model_dir, TensorFlow's event files apart."""
