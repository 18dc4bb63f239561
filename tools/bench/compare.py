#!/usr/bin/env python3
"""Compares the figures of two runs of one benchmark, which `--json FILE` of each wrote.

    python3 tools/bench/compare.py BEFORE.json AFTER.json

Prints one line per figure: both medians, and the second over the first. A `*` marks a figure whose
middle halves do not overlap, so the difference is probably not noise. A figure that was measured
only once is never marked. Then follows each circumstance that differs: command, machine, versions,
and the load of the machine where it differs by more than 0.5.

The exit status is 0 if nothing is marked or missing, 1 if something is, and 2 if the files cannot
be compared.
"""

import argparse
import sys

import figures

MORE_LOAD = 0.5
"""Load averages that differ by more are another circumstance."""


def lines_of_figures(before, after):
    """Yields (whether it counts as a difference, a line) for each key of two dicts of figures."""
    for key in sorted(before.keys() | after.keys()):
        a, b = before.get(key), after.get(key)
        if a is None or b is None:
            yield True, f'{key:40}only in the {"first" if b is None else "second"}'
        elif a['unit'] != b['unit']:
            yield True, f'{key:40}in {a["unit"]} and in {b["unit"]}'
        else:
            marked = differs(a, b)
            ratio = f'{b["median"] / a["median"]:8.3f}' if a['median'] else f'{"":8}'
            yield marked, (f'{key:40}{figures.number(a["median"]):>10}'
                           f'{figures.number(b["median"]):>10} {a["unit"]:14}{ratio}'
                           f'{" *" if marked else ""}')


def differs(a, b):
    """Whether two figures differ by more than they vary."""
    return min(a['windows'], b['windows']) > 1 and (a['high'] < b['low'] or b['high'] < a['low'])


def circumstances_that_differ(a, b):
    """Yields a line for each circumstance that differs."""
    for name in ('command', 'machine', 'versions'):
        one, other = _as_dict(name, a[name]), _as_dict(name, b[name])
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                yield f'{key}: {one.get(key)} and {other.get(key)}'
    for when, one, other in (
            ('before', a['load']['before'][0], b['load']['before'][0]),
            ('during', _during(a['load']), _during(b['load']))):
        if abs(one - other) > MORE_LOAD:
            yield f'load {when}: {one} and {other}'


def _as_dict(name, value):
    return value if isinstance(value, dict) else {name: value}


def _during(load):
    return load['during']['median'] if load['during'] else load['after'][0]


def main():
    """Prints the differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('before', metavar='BEFORE.json')
    parser.add_argument('after', metavar='AFTER.json')
    parsed = parser.parse_args()
    try:
        a, b = figures.read(parsed.before), figures.read(parsed.after)
        if a['benchmark'] != b['benchmark']:
            raise ValueError(f'figures of {a["benchmark"]} and of {b["benchmark"]}')
    except (OSError, ValueError) as error:
        print(f'compare: {error}', file=sys.stderr)
        return 2
    found = list(lines_of_figures(a['figures'], b['figures']))
    for _, line in found:
        print(line)
    for line in circumstances_that_differ(a['circumstances'], b['circumstances']):
        print(f'differs: {line}')
    for content in (a, b):
        about = content['circumstances']
        print(f'{(about["commit"] or "no commit")[:12]}'
              f'{" with changes" if about["dirty"] else ""}, {about["date"]}')
    return int(any(marked for marked, _ in found))


if __name__ == '__main__':
    sys.exit(main())
