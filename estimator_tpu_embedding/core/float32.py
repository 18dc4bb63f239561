"""Writes numbers of the hardware's type as people write them."""

from __future__ import annotations

import struct

_LARGEST = 2.0**128 - 2.0**104


def shortest(number: float) -> float:
    """Returns the shortest decimal number that is the same float32.

    Args:
      number: finite.

    >>> shortest(0.05000000074505806)
    0.05
    """
    shorter = (float(f'{number:.{digits}g}') for digits in range(1, 18))
    return next(short for short in shorter if abs(short) <= _LARGEST
                and struct.pack('f', short) == struct.pack('f', number))


def is_float32(number: float) -> bool:
    """Whether a finite number has the value of a float32.

    >>> is_float32(0.5), is_float32(0.1), is_float32(1e300)
    (True, False, False)
    """
    return abs(number) <= _LARGEST and struct.unpack('f', struct.pack('f', number))[0] == number
