"""Judges the constructs of all files: traps, and how TPU-only calls are emulated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from . import emulated, optimizer_traps, size_traps
from .facts import Fact, Finding, ScannedFile
from .flags import Flags
from .linked import Linked, groups_of
from .old_methods import TODAY

_REMOTE = {
    'gs': 'TensorFlow itself reads it, over the network and with your credentials; Python\'s '
          'open() does not, and a TPUEstimator refuses it as model_dir (E913): copy what you can '
          'to this machine, and give a local model_dir',
    '/cns/': 'a file system of Google; here it is a local path: copy the files to this machine',
    '/bigstore/': 'a file system of Google; here it is a local path: copy the files to this '
                  'machine',
    '/placer/': 'a file system of Google; here it is a local path: copy the files to this machine'}
_NO_FILE_SYSTEM = ('TensorFlow has no file system for {}:// (UnimplementedError), unless a package '
                   'registers one: copy the files to this machine')
_EXPORTS = frozenset({
    'export_saved_model', 'export_savedmodel', 'experimental_export_all_saved_models'})


def findings_of(files: Sequence[ScannedFile], flags: Mapping[str, Flags]) -> list[Finding]:
    """Returns the findings about constructs, in no order: W211 to W218, E104, E122 and I311.

    Args:
      files: all files of the project.
      flags: by path of each file, what it needs with all files that it imports.
    """
    found: list[Finding] = []
    for file in files:
        found += itertools.chain.from_iterable(map(_of_constant, file.facts))
    for group in groups_of(files):
        needs_tf1 = any(flags.get(file.path, Flags()).tf1 for file in group.files)
        for file in group.files:
            found += emulated.findings_of(file, needs_tf1)
        found += optimizer_traps.findings_of(group)
        found += size_traps.findings_of(group)
        found += _refused(group)
        if not needs_tf1:
            found += map(_of_argument, group.facts('old argument'))
    return found


def _of_argument(fact: Fact) -> Finding:
    """W218: an argument that decides alone that TensorFlow 1 is meant."""
    name, path = str(fact.values['name']), str(fact.values['path'])
    return Finding('W218', fact.place, f'{path}({name}=)', name,
                   f'{path} of TensorFlow 2 has no argument {name} (TypeError), and that of '
                   'TensorFlow 1 has it: etpe run --tf1')


def _of_constant(fact: Fact) -> Iterator[Finding]:
    """Yields what one fact is enough for: E122 and W217."""
    if fact.kind == 'old method':
        name, written = str(fact.values['name']), str(fact.values['written'])
        today = TODAY[name].format(written.rpartition('.')[0])
        yield Finding('E122', fact.place, f'dict.{name}', written,
                      f'a dict of Python 3 has no {name}(): write {today}')
    elif fact.kind == 'path':
        scheme, path = str(fact.values['scheme']), str(fact.values['path'])
        yield Finding('W217', fact.place, path, path,
                      f'{path[:80]} is not on this machine: '
                      + _REMOTE.get(scheme, _NO_FILE_SYSTEM.format(scheme)))


def _refused(group: Linked) -> Iterator[Finding]:
    """Yields E104 for an argument that refuses what the program asks for later."""
    if not any(fact.values['name'] in _EXPORTS for fact in group.facts('method')):
        return
    for call in group.calls('TPUEstimator'):
        known = group.known(call, 'export_to_cpu', True)
        if known is not None and known.value is False and not known.source:
            yield Finding('E104', known.place, 'TPUEstimator.export_to_cpu', 'export_to_cpu',
                          'export_to_cpu=False refuses every export (E915): only graphs for the '
                          'CPU are written; leave it out')
