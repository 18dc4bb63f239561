#!/usr/bin/env python3
"""Prints the table of a benchmark's JSON file, and keeps such tables in documents up to date.

    python3 tools/bench/figures.py FILE.json [PATTERN...]     # prints the table
    python3 tools/bench/figures.py --fill DOCUMENT.md...      # renews all tables of documents

A document holds a table between two comments. Patterns after the file, with `*` for anything, say
which figures it shows; without one it shows all.

    <!-- figures: tools/bench/results/job.json plain/* -->
    <!-- /figures -->

The path begins at the root of the repository. `tests/tools/figures_test.py` fails if a table in a
document is not the one that the file gives.
"""

import argparse
import fnmatch
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BEGIN = re.compile(r'<!-- figures: (\S+)((?: [^>]+)?) -->')
END = '<!-- /figures -->'
_BLOCK = re.compile(rf'({BEGIN.pattern})\n(.*?){re.escape(END)}', re.DOTALL)
_FIELDS = {'figures': dict, 'circumstances': dict, 'benchmark': str}


def read(path):
    """The content of a JSON file that a benchmark wrote.

    Raises:
      ValueError: if it is none.
      OSError: if it cannot be read.
    """
    content = json.loads(pathlib.Path(path).read_text())
    if not isinstance(content, dict) or content.get('format') != 1 or not all(
            isinstance(content.get(name), kind) for name, kind in _FIELDS.items()):
        raise ValueError(f'{path} holds no figures of a benchmark')
    return content


def table(content, patterns=()):
    """The figures in Markdown, and a line on the circumstances.

    Raises:
      ValueError: if a pattern fits no figure.
    """
    found = content['figures']
    for pattern in patterns:
        if not fnmatch.filter(found, pattern):
            raise ValueError(f'no figure of {content["benchmark"]} fits {pattern!r}')
    shown = [key for key in found
             if not patterns or any(fnmatch.fnmatchcase(key, one) for one in patterns)]
    bars = any(bar_text(found[key]) for key in shown)
    lines = ['| figure | median | unit | middle half | windows |' + ' wanted |' * bars,
             '|---|--:|---|---|--:|' + '---|' * bars]
    for key in shown:
        one = found[key]
        half = f'{number(one["low"])} to {number(one["high"])}' if one['windows'] > 1 else ''
        lines.append(f'| {key} | {number(one["median"])} | {one["unit"]} | {half} '
                     f'| {one["windows"]} |' + f' {bar_text(one)} |' * bars)
    return '\n'.join([*lines, '', circumstances_text(content), ''])


def bar_text(figure):
    """What is wanted of a figure, and whether it is so; empty if nothing is wanted.

    >>> bar_text({'median': 1.4, 'most': 1.3}), bar_text({'median': 12.5, 'least': 12})
    ('at most 1.3: **missed**', 'at least 12: met')
    """
    for name, is_met in (('most', float.__le__), ('least', float.__ge__)):
        if name in figure:
            met = is_met(float(figure['median']), float(figure[name]))
            return f'at {name} {number(figure[name])}: {"met" if met else "**missed**"}'
    return ''


def number(value):
    """A number with three digits that count, and no exponent.

    >>> number(0.012345), number(12.345), number(123456.0)
    ('0.0123', '12.3', '123,456')
    """
    if value == 0 or abs(value) >= 1000:
        return f'{value:,.0f}'
    rounded = float(f'{value:.3g}')
    return f'{rounded:.10f}'.rstrip('0').rstrip('.')


def circumstances_text(content):
    """One paragraph on what was measured, when and where."""
    about = content['circumstances']
    of, load = about['machine'], about['load']
    commit = (about['commit'] or 'no commit')[:12] + (' with changes' if about['dirty'] else '')
    during = load['during'] or {'median': load['after'][0], 'highest': load['after'][0]}
    versions = ', '.join(f'{name} {version}' for name, version in about['versions'].items()
                         if version is not None)
    others = f', others {load["others"]:.1%} of the CPU time' if 'others' in load else ''
    if about.get('disturbed') is not None:
        others += f', {about["disturbed"]} disturbed windows thrown away'
    return (f'`{about["command"]}` at {commit}, {about["date"][:10]}; {of["cores"]} cores of '
            f'{of["cpu"]}, {of["memory_gib"]} GiB, {of["kernel"]}; {versions}; load '
            f'{load["before"][0]:.1f} before, {during["median"]:.1f} during, at most '
            f'{during["highest"]:.1f}{others}.')


def filled(document, root=ROOT):
    """A document with all of its tables renewed.

    Raises:
      ValueError: if a comment has no end, or its file or pattern fits nothing.
    """
    whole, count = _BLOCK.subn(lambda block: _renewed(block, root), document)
    if count != len(BEGIN.findall(document)) or count != document.count(END):
        raise ValueError(f'each comment "figures" needs an end, {END}')
    return whole


def _renewed(block, root):
    path, patterns = block[2], block[3].split()
    try:
        return f'{block[1]}\n{table(read(root / path), patterns)}{END}'
    except OSError as error:
        raise ValueError(f'cannot read {path}: {error.strerror}') from error


def main():
    """Does what the command line says; the exit status is 2 if something cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('file', metavar='FILE', help='JSON, or documents with --fill')
    parser.add_argument('more', nargs='*', metavar='PATTERN', help='of the figures to show')
    parser.add_argument('--fill', action='store_true', help='renew the tables of documents')
    parsed = parser.parse_args()
    try:
        if not parsed.fill:
            print(table(read(parsed.file), parsed.more), end='')
            return 0
        for path in map(pathlib.Path, [parsed.file, *parsed.more]):
            path.write_text(filled(path.read_text()))
    except (OSError, ValueError) as error:
        print(f'figures: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
