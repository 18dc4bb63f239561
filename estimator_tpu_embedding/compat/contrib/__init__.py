"""A part of `tf.contrib`: by area, the names that it provides.

It follows the documented behaviour of TensorFlow 1.15. Nothing here is imported before
`install(contrib=True)`.
"""
