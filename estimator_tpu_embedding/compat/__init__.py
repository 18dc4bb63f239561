"""Makes import paths and names that TensorFlow removed resolve again, on request."""
