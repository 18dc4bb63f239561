"""Reads a declaration per line, and prints the config that TensorFlow 2.15 makes of it, in hex."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness.declarations import build  # noqa: E402
from tensorflow.python.tpu import tpu_embedding  # noqa: E402

for line in sys.stdin:
    config = build(tpu_embedding, json.loads(line)).config_proto
    print(config.SerializeToString().hex(), flush=True)
