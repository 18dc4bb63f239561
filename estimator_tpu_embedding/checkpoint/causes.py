"""Finds in the errors of TensorFlow which task could not write a file, and why."""

from __future__ import annotations

import re
from typing import NamedTuple

import tensorflow.compat.v1 as tf

_FROM_TASK = re.compile(r'From (/job:\S+/task:\d+):\n([^\n]+)')
_AT_TASK = re.compile(r'^OOM .* on (/job:\S+/task:\d+)/')
_AFTER_NODE = re.compile(r"Node: '[^\n]*'\n(?!Detected at node|=====)([^\n]+)")


class Cause(NamedTuple):
    """What lies behind an error of TensorFlow.

    Attributes:
      device: of the task that raised it; `''` if it was this process.
      text: what went wrong, in one line.
    """

    device: str
    text: str


def cause_of(error: tf.errors.OpError) -> Cause:
    """Returns what an error of TensorFlow says apart from stacks.

    >>> message = "Node: 'save/SaveV2'\\nD/model.ckpt-7; No such file or directory\\n\\t [[...]]"
    >>> cause_of(tf.errors.NotFoundError(None, None, message))
    Cause(device='', text='D/model.ckpt-7; No such file or directory')
    """
    device, text = '', error.message
    if (from_task := _FROM_TASK.search(text)) is not None:
        device, text = from_task[1], from_task[2].strip()
    elif (after_node := _AFTER_NODE.search(text)) is not None:
        text = after_node[1].strip()
    if error.op is not None:  # The text may name another task, which waited for the first.
        device = error.op.device
    if (at_task := _AT_TASK.search(text)) is not None:
        device = at_task[1]
    return Cause(device, text)
