"""A small `tf.contrib`: one module per area, with a dict `NAMES` of what the area provides.

Written from the documented behaviour of TensorFlow 1.15. Nothing here is imported before
`install(contrib=True)`.
"""
