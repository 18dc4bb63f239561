"""A small `tf.contrib`: one module per area, whose `NAMES` is what the area provides.

Written from the documented behaviour of TensorFlow 1.15. Nothing here is imported before
`install(contrib=True)`.
"""
