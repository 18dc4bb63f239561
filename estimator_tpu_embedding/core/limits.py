"""The largest sizes that a declaration may have, and the numbers that the hardware's float32 has.

A larger size is a mistake or an attack.
"""

from __future__ import annotations

import struct

MAX_VOCABULARY_SIZE = 2**31 - 1
"""Rows of one table: ids are 32-bit in the embedding engine of the hardware."""

MAX_DIMENSION = 2**16
"""Columns of one table."""

MAX_BUCKETS = 2**31 - 1
"""Number of values of a quantized table: the config holds it in 32 bits."""

MAX_QUANTIZED = 1e38
"""Magnitude of the bounds of a quantized table: the distance between them is a float32."""

MAX_TABLES = 10_000
MAX_FEATURES = 100_000
MAX_NAME_LENGTH = 1_000

MAX_HOSTS = 4_096
MAX_CORES_PER_HOST = 256

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
