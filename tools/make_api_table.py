#!/usr/bin/env python3
"""Writes `tests/golden/lost_names.json` and `estimator_tpu_embedding/LOST_NAMES.md`.

    .venv/bin/python tools/make_api_table.py [PYTHON]

PYTHON is that of an environment with TensorFlow 2.15, `.venv215/bin/python` if left out:
`make_goldens.py` says how it is made. The other TensorFlow is that of the Python that runs this.
Without such an environment, `--table` writes the table alone, from the golden that is there; the
rules that it is made by are in `tests/harness/lost_names.py`.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests'))
from harness import api_names, lost_names  # noqa: E402


def names_of(python, **environment):
    """What the TensorFlow of a Python offers."""
    done = subprocess.run([python, api_names.__file__], stdout=subprocess.PIPE, check=True,
                          env={**os.environ, **environment})
    return json.loads(done.stdout)


def main():
    """Writes both files, or with `--table` the second."""
    if sys.argv[1:] != ['--table']:
        original = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / '.venv215/bin/python')
        found = lost_names.difference(
            names_of(original), names_of(sys.executable, TF_USE_LEGACY_KERAS='1'))
        lost_names.GOLDEN.write_text(lost_names.golden_text(found))
    unexplained = [name for name in lost_names.lost_names() if lost_names.rule_of(name) is None]
    if unexplained:
        sys.exit('No rule in tests/harness/lost_names.py for: ' + ', '.join(unexplained))
    golden = json.loads(lost_names.GOLDEN.read_text())
    lost_names.TABLE.write_text(lost_names.table(golden))
    print(f'{len(lost_names.lost_names())} names')


if __name__ == '__main__':
    main()
