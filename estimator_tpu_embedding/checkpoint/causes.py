"""Finds in the errors of TensorFlow which task could not write a file, and why."""

from __future__ import annotations

import re
from typing import NamedTuple

_FROM_TASK = re.compile(r'From (/job:\S+/task:\d+):\n([^\n]+)')
_AFTER_NODE = re.compile(r"Node: '[^\n]*'\n(?!Detected at node|=====)([^\n]+)")


class Cause(NamedTuple):
    """What lies behind an error of TensorFlow.

    Attributes:
      device: of the task that raised it; `''` if it was this process.
      text: what went wrong, in one line.
    """

    device: str
    text: str


def cause_of(message: str) -> Cause:
    """Returns what the message of an error of TensorFlow says apart from stacks.

    >>> cause_of("Node: 'save/SaveV2'\\nD/model.ckpt-7; No such file or directory\\n\\t [[...]]")
    Cause(device='', text='D/model.ckpt-7; No such file or directory')
    """
    from_task = _FROM_TASK.search(message)
    if from_task is not None:
        return Cause(from_task[1], from_task[2].strip())
    after_node = _AFTER_NODE.search(message)
    return Cause('', message if after_node is None else after_node[1].strip())
