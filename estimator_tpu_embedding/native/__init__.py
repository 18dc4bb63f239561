"""The compiled engine: its TensorFlow operations, its variables, and how a plan is encoded."""
