"""Draws figures of benchmarks as SVG: a job beside its peers, and a step on a time line.

`report.png` beside this file is a picture of a page.

`pages.py` puts a picture where a document has `<!-- picture: NAME -->`.
"""

import base64
import html
import json
import pathlib
from collections.abc import Callable, Sequence

RESULTS = pathlib.Path(__file__).resolve().parents[1] / 'bench' / 'results'
COLOURS = {'input': '#8d99ae', 'look-up': '#2a9d8f', 'dense': '#e9c46a', 'update': '#e76f51'}
WIDTH, LEFT, ROW, BAR = 720, 190, 34, 22
"""Pixels: the picture, what is before the axis, and the heights of a row and of its bar."""


def medians(name: str) -> dict[str, float]:
    """The median of each figure of a benchmark."""
    figures = json.loads((RESULTS / f'{name}.json').read_text())['figures']
    return {key: one['median'] for key, one in figures.items()}


def text(x: float, y: float, words: str, anchor: str = 'start') -> str:
    """One line of text."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor" '
            f'font-size="14">{html.escape(words)}</text>')


def bar(begin: float, end: float, y: float, colour: str) -> str:
    """One bar between two pixels."""
    return (f'<rect x="{begin:.1f}" y="{y:.1f}" width="{end - begin:.1f}" height="{BAR}" '
            f'fill="{colour}"/>')


def drawn(title: str, rows: int, parts: Sequence[str]) -> str:
    """The picture, in one line: Markdown ends a block of HTML at an empty one."""
    return (f'<svg role="img" aria-label="{html.escape(title)}" viewBox="0 0 {WIDTH} {ROW * rows}" '
            f'xmlns="http://www.w3.org/2000/svg" font-family="inherit">{"".join(parts)}</svg>')


def speed() -> str:
    """Milliseconds per step of a job with the native kernels, and of plain Estimators."""
    found = {key: value for key, value in medians('job').items() if not key.endswith('ratio')}
    scale = (WIDTH - LEFT - 80) / max(found.values())
    parts = []
    for row, (key, value) in enumerate(found.items()):
        y, colour = row * ROW, COLOURS['look-up' if key.startswith('ours') else 'input']
        parts += [text(LEFT - 10, y + 16, key, 'end'), bar(LEFT, LEFT + value * scale, y, colour),
                  text(LEFT + value * scale + 6, y + 16, f'{value:.1f} ms')]
    return drawn('milliseconds per step, less is better', len(found), parts)


def timeline() -> str:
    """When the parts of a step begin and end on two hosts, and the input beside it."""
    found = medians('timeline')
    first, last = min(found.values()), max(found.values())
    scale = (WIDTH - LEFT - 20) / (last - first)
    rows = [(host, part) for host in (0, 1) for part in ('input', 'step')]
    parts = []
    for row, (host, lane) in enumerate(rows):
        parts.append(text(LEFT - 10, row * ROW + 16, f'host {host}: {lane}', 'end'))
        for part in ['input'] if lane == 'input' else ['look-up', 'dense', 'update']:
            begin, end = (LEFT + (found[f'host {host}, {part} {word}'] - first) * scale
                          for word in ('begins', 'ends'))
            parts.append(bar(begin, end, row * ROW, COLOURS[part]))
            parts.append(text((begin + end) / 2, row * ROW + 16, part, 'middle'))
    for time in range(int(-first // 5) * -5, int(last) + 1, 5):
        parts.append(text(LEFT + (time - first) * scale, (len(rows) + .5) * ROW,
                          f'{time} ms' if not time else str(time), 'middle'))
    return drawn('one step on two hosts, and the input for a later one', len(rows) + 1, parts)


def report() -> str:
    """The page of `etpe report` about a census job, as Chromium showed it."""
    content = base64.b64encode((pathlib.Path(__file__).parent / 'report.png').read_bytes())
    return ('<img width="720" alt="The page: loss and metrics, the time of a step by phases, '
            f'throughput, tables" src="data:image/png;base64,{content.decode()}">')


PICTURES: dict[str, Callable[[], str]] = {
    'report': report, 'speed': speed, 'timeline': timeline}
