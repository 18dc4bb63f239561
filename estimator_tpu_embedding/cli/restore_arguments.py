"""Reads `--rename`, and holds the help of `--assume`, for `etpe run` and `etpe checkpoint`."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ConfigError, Problem, shown

ASSUME = '"div", or "mod:H" for H hosts: how rows are ordered in checkpoints that do not say it'
"""Help of `--assume`."""


def renames(texts: Iterable[str]) -> dict[str, str]:
    """Returns the values of `--rename OLD=NEW` as a dict.

    Raises:
      ConfigError: E626 if a value has another form, or an OLD comes twice.
    """
    renamed: dict[str, str] = {}
    for text in texts:
        old, _, new = text.partition('=')
        if not old or not new or old in renamed:
            raise ConfigError(Problem('E626', '--rename', 'it must be OLD=NEW, with each OLD once',
                                      shown(repr(text), 200)))
        renamed[old] = new
    return renamed
