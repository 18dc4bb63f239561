"""Defines `HParams`: hyper-parameters as attributes, with the types of their first values.

>>> hparams = HParams(rate=.1, layers=[64, 32], name='mlp')
>>> hparams.parse('rate=1e-3,layers=[8,8,4],name=wide').values()
{'rate': 0.001, 'layers': [8, 8, 4], 'name': 'wide'}
"""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

# name, index in brackets, then a list in brackets or one value, then a comma or the end
_ASSIGNMENT = re.compile(
    r'\s*+(?P<name>[A-Za-z][\w.]*+)\s*+(\[\s*+(?P<index>\d++)\s*+\]\s*+)?=\s*+'
    r'(\[(?P<list>[^\]]*+)\]|(?P<one>[^,\[]*+))\s*+(,|$)')
_BOOLS = {'true': True, 'True': True, '1': True, 'false': False, 'False': False, '0': False}


class HParams:
    """Hyper-parameters; `hparams.rate` is the value of `rate`."""

    def __init__(self, *, model_structure: Any = None, **kwargs: Any):
        """Takes names and values; the elements of a list have the type of its first element."""
        self._types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds one; a `ValueError` if it or a method of the name exists, or for an empty list."""
        if getattr(self, name, None) is not None:
            raise ValueError(f'Hyperparameter name is reserved: {name}')
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f'Multi-valued hyperparameters cannot be empty: {name}')
        self._types[name] = type(value[0] if is_list else value), is_list
        setattr(self, name, list(value) if is_list else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes one; a `KeyError` if there is none, a `ValueError` for another type."""
        kind, is_list = self._types[name]
        if isinstance(value, list) != is_list:
            raise ValueError(f'Must {"" if is_list else "not "}pass a list for '
                             f'{"multi" if is_list else "single"}-valued parameter: {name}')
        setattr(self, name, [_cast(name, kind, one) for one in value] if is_list
                else _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyper-parameter, if it exists."""
        if name in self._types:
            delattr(self, name)
            del self._types[name]

    def parse(self, values: str) -> HParams:
        """Changes values by text such as `'rate=.5,layers=[8,4],layers[0]=16'`; returns itself.

        It raises a `ValueError` for an unknown name, or a value of another type.
        """
        return self.override_from_dict(parse_values(
            values, {name: kind for name, (kind, _) in self._types.items()}))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Changes values; `{0: 16}` for a list changes its elements by index. Returns itself.

        It raises the errors of `set_hparam`.
        """
        for name, value in values_dict.items():
            if isinstance(value, Mapping) and self._types[name][1]:
                changed = list(getattr(self, name))
                for index, element in value.items():
                    if not 0 <= index < len(changed):
                        raise ValueError(f'{name} has {len(changed)} elements, none has the '
                                         f'index {index}')
                    changed[index] = element
                value = changed
            self.set_hparam(name, value)
        return self

    def values(self) -> dict[str, Any]:
        """Returns names and values."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of `key`, or the default, which must be of the type of such a value."""
        if key not in self._types:
            return default
        if default is not None:
            kind, is_list = self._types[key]
            if isinstance(default, list) != is_list:
                raise ValueError(f'The default of {key} must {"" if is_list else "not "}be a list')
            for one in default if is_list else [default]:
                _cast(key, kind, one)
        return getattr(self, key)

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps an object for `get_model_structure`."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """Returns the object that was kept."""
        return self._model_structure

    def to_json(self, indent: int | None = None, separators: tuple[str, str] | None = None,
                sort_keys: bool = False) -> str:
        """Returns names and values as JSON; functions are left out."""
        return json.dumps({name: value for name, value in self.values().items()
                           if not callable(value)},
                          indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> HParams:
        """Changes values by a JSON object; returns itself. Raises the errors of a dict."""
        return self.override_from_dict(json.loads(values_json))

    def __contains__(self, key: object) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f'HParams({self})'


def parse_values(values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
                 ) -> dict[str, Any]:
    """Reads assignments that are separated by commas.

    Returns:
      By name a value, a list of values, or a dict from index to value.

    Raises:
      ValueError: for unreadable text, a name without a type, or a name with two values.

    >>> parse_values('a=1,b=[2,3],c[1]=.5', dict(a=bool, b=int, c=float))
    {'a': True, 'b': [2, 3], 'c': {1: 0.5}}
    """
    found: dict[str, Any] = {}
    at = 0
    while at < len(values):
        match = _ASSIGNMENT.match(values, at)
        if not match:
            raise ValueError(f'Malformed hyperparameter value: {values[at:]}')
        at = match.end()
        name = match['name']
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f'Unknown hyperparameter type for {name}')
        _put(found, match, type_map[name])
    return found


def _put(found: dict[str, Any], match: re.Match[str], kind: type) -> None:
    name, index = match['name'], match['index']
    if name in found and (index is None or not isinstance(found[name], dict)
                          or int(index) in found[name]):
        raise ValueError(f'Multiple assignments to variable {name!r} in {match.string!r}')
    if match['list'] is None:
        value: Any = _read(name, kind, match['one'])
    elif index is not None:
        raise ValueError(f'Assignment of a list to a list index: {match[0]!r}')
    else:
        value = [_read(name, kind, one) for one in re.split('[ ,]', match['list']) if one.strip()]
    if index is None:
        found[name] = value
    else:
        found.setdefault(name, {})[int(index)] = value


def _read(name: str, kind: type, text: str) -> Any:
    text = text.strip()
    if kind in (str, type(None)):
        return text
    try:
        return _BOOLS[text] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise ValueError(f'Could not parse hparam {name!r} of type {kind.__name__!r} from '
                         f'{text!r}') from None


def _cast(name: str, kind: type, value: Any) -> Any:
    """Returns the value as the type, if the conversion loses nothing."""
    if kind is type(None):
        return value
    fits = isinstance(value, kind) or kind is float and isinstance(value, numbers.Real) or (
        kind is int and isinstance(value, numbers.Integral))
    if not fits or isinstance(value, bool) != (kind is bool):
        raise ValueError(f'Could not cast hparam {name!r} of type {kind.__name__!r} from '
                         f'{value!r}')
    return kind(value) if kind in (int, float, str, bool) else value
