"""Reads the environment variable `TF_CONFIG`, and reports all of its problems at once.

The nightly reads the variable in its module `run_config`, by `json.loads`. `_legacy` replaces the
name `json` in that module by the class `TfConfig`, whose method `loads` checks the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .errors import ConfigError, Problem, shown


class TfConfig:
    """Reads `TF_CONFIG` in the place of the module `json`."""

    MAX_LENGTH = 2**22
    """In characters; a cluster of 4,096 tasks takes some 10^5."""

    MAX_DEPTH = 32

    @classmethod
    def loads(cls, text: str) -> dict[str, Any]:
        """Returns the JSON object that the variable holds.

        Raises:
          ConfigError: if it cannot be read, or its parts do not have the documented form.
        """
        if len(text) > cls.MAX_LENGTH:
            raise ConfigError(_wrong_tf_config(
                f'it must have at most {cls.MAX_LENGTH:,} characters', f'{len(text):,}'))
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(_wrong_tf_config(
                'it must hold an object of JSON', f'{type(error).__name__}: {error}, in '
                f'{shown(text) or "nothing"}')) from error
        problems = list(_problems_of_tf_config(found, cls.MAX_DEPTH))
        if problems:
            raise ConfigError(*problems)
        return found


def _problems_of_tf_config(found: Any, max_depth: int) -> Iterator[Problem]:
    """Yields the problems of a value of `TF_CONFIG` that the nightly does not report."""
    level = [found]
    for _ in range(max_depth):
        level = [part for one in level if isinstance(one, (dict, list))
                 for part in (one.values() if isinstance(one, dict) else one)]
    if level:
        yield _wrong_tf_config(f'it may be nested {max_depth} deep', 'more')
    elif not isinstance(found, dict):
        yield _wrong_tf_config('it must hold an object of JSON', _as_json(found))
    else:
        yield from _problems_of_cluster(found.get('cluster', {}))
        yield from _problems_of_task(found.get('task', {}))


def _problems_of_cluster(cluster: Any) -> Iterator[Problem]:
    if not isinstance(cluster, dict):
        yield _wrong_tf_config('its "cluster" must be an object', _as_json(cluster))
        return
    for job, tasks in cluster.items():
        is_numbered = isinstance(tasks, dict) and all(re.fullmatch('[0-9]+', one) for one in tasks)
        addresses = list(tasks.values()) if is_numbered else tasks
        if not isinstance(addresses, list) or not all(isinstance(one, str) for one in addresses):
            yield _wrong_tf_config(f'job "{shown(job)}" of its "cluster" must list addresses',
                                   _as_json(tasks))


def _problems_of_task(task: Any) -> Iterator[Problem]:
    if not isinstance(task, dict):
        yield _wrong_tf_config('its "task" must be an object', _as_json(task))
        return
    if not re.fullmatch('-?[0-9]{1,9}', str(task.get('index', 0))):
        yield _wrong_tf_config('"index" of its "task" must be a whole number',
                               _as_json(task['index']))
    if not isinstance(task.get('type', ''), str):
        yield _wrong_tf_config('"type" of its "task" must be a string', _as_json(task['type']))


def _as_json(value: Any) -> str:
    return shown(json.dumps(value))


def _wrong_tf_config(rule: str, got: str) -> Problem:
    return Problem('E469', 'TF_CONFIG', rule, got,
                   'Correct the environment variable, or unset it to run in one process.')
