"""Of the same name as that of the neighbour, and with another TensorFlow in it."""
import tensorflow as tf
