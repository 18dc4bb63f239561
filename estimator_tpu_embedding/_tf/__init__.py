"""Holds every private symbol of TensorFlow that this package borrows, one function for each.

No other folder imports `tensorflow.python`. Each module covers one area, and each docstring says
why no public symbol would do. `tools/noxfile.py` tests them with TensorFlow 2.16, and the gate with
2.21. Functions import TensorFlow when they are called, so importing this package costs nothing.
Callers write `_tf.name()` for every module but `distribute`, which its few users import themselves.
"""

from .columns import *
from .graphs import *
from .saving import *
from .sessions import *
from .tpu import *
from .variables import *
