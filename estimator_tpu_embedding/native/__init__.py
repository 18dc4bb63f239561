"""The engine in C++, as operations of TensorFlow, and what Python must know to use it."""
