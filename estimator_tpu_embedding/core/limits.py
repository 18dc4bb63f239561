"""The largest sizes that a declaration may have. A larger one is a mistake or an attack."""

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
