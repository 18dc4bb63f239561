#!/usr/bin/env python3
"""Compiles `protos/*.proto` into `estimator_tpu_embedding/proto/`.

Run it after a change to a .proto file, and commit the files that it writes. It uses protoc 25,
from grpcio-tools 1.62, in a throw-away virtual environment. Classes of that version load under
every protobuf runtime from 4.25 to 7. Classes of a newer compiler would need a runtime at least as
new.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILER = 'grpcio-tools==1.62.3'
PACKAGE = 'estimator_tpu_embedding/proto'


def main() -> None:
    """Compiles all files."""
    sources = sorted(str(path) for path in (ROOT / 'protos').glob('*.proto'))
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, '-m', 'venv', directory], check=True)
        python = f'{directory}/bin/python'
        subprocess.run([python, '-m', 'pip', 'install', '-q', COMPILER, 'setuptools<81'],
                       check=True)
        # Run as a module it adds the path of the well-known types itself.
        subprocess.run([python, '-m', 'grpc_tools.protoc', f'-I{PACKAGE}={ROOT / "protos"}',
                        f'--python_out={ROOT}', f'--pyi_out={ROOT}', *sources], check=True)
    print(f'compiled {len(sources)} files into {PACKAGE}')


if __name__ == '__main__':
    main()
