"""Scans small files for tests of the doctor."""

import textwrap

from estimator_tpu_embedding.doctor.diagnose import scan_file
from estimator_tpu_embedding.doctor.findings import Place
from estimator_tpu_embedding.doctor.project import Project
from estimator_tpu_embedding.doctor.sources import Found, Source
from estimator_tpu_embedding.doctor.symbol_table import Exports


def scanned(source, path='train.py', imports=()):
    """Returns a `ScannedFile` of a source; it imports these files of a project, one per line."""
    project = Project(Found(()), lambda file, project: Exports({}, is_open=True))
    file = scan_file(Source(path, [textwrap.dedent(source)]), project)
    file.imports = {name: Place(path, line) for line, name in enumerate(imports, 1)}
    file.is_program = '__main__' in source
    return file
