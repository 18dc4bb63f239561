"""Prints a topic of the documentation; without TOPIC, lists the topics.

A topic is a Markdown file that is installed with the package. Its name is that of the file, in
lower case and with hyphens. A link to the file, such as ../LOST_NAMES.md, is taken for it too.
"""

from __future__ import annotations

import argparse
import pathlib

from .report import Grid, Line, Report, as_command

PACKAGE = pathlib.Path(__file__).parents[1]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('topic', metavar='TOPIC', nargs='?', type=_name,
                        choices=sorted(topics()), help='such as checkpoints')
    as_command(parser, _report)


def topics() -> dict[str, pathlib.Path]:
    """The file of each topic, by the name of the topic: the folder `docs/` comes first."""
    return {_name(file.name): file for folder in (PACKAGE / 'docs', PACKAGE)
            for file in sorted(folder.glob('*.md'))}


def _name(file: str) -> str:
    """Returns the topic of a file, or of a link to it such as `../LOST_NAMES.md`."""
    return file.rpartition('/')[2].removesuffix('.md').lower().replace('_', '-')


def _report(parsed: argparse.Namespace) -> Report:
    texts = {topic: file.read_text('utf-8') for topic, file in topics().items()
             if parsed.topic in (None, topic)}
    found = [{'topic': topic, 'title': text.partition('\n')[0].removeprefix('# ')}
             for topic, text in texts.items()]
    if parsed.topic is None:
        return Report([Grid(('topic', 'title'), [tuple(one.values()) for one in found]),
                       Line('etpe docs TOPIC prints one of them.')], {'topics': found})
    text = texts[parsed.topic]
    return Report([text], {**found[0], 'text': text})
