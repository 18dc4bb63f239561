"""A small `tf.contrib`: one module per area, with a dict `NAMES` of what the area provides.

It follows the documented behaviour of TensorFlow 1.15. Nothing here is imported before
`install(contrib=True)`.
"""
