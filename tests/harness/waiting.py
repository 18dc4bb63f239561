"""Waits for what other threads and processes do."""

import time


def until(condition, what, seconds=150):
    """Waits until a condition holds; returns what it gave.

    Args:
      condition: a function without arguments. It is asked about 20 times a second.
      what: what is waited for, for the message.
      seconds: after which the test fails. Only what hangs takes so long.
    """
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f'not within {seconds} s: {what}'
        time.sleep(.05)
    return found
