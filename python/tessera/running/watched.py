"""Places where a program finds something, and what was found there: entries of dictionaries and lists, fields of objects, lengths,
members of sets, answers of functions.

Nothing here is compared by value: in every call it is enough that the same objects stand there. Where another one does, who
made the list of places looks closely, and makes it anew where the values are those that were.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping


class Watched:
    """Columns, as the extension reads them (guards.cpp)."""

    def __init__(self):
        self.items: tuple[list, list, list] = ([], [], [])  # containers, keys or indices, values
        self.fields: tuple[list, list, list] = ([], [], [])  # objects, names, values
        self.sizes: tuple[list, list] = ([], [])  # containers, lengths
        self.wholes: tuple[list, list] = ([], [])  # sets, lists and dictionaries, and their members (members_of)
        self.calls: tuple[list, list, list] = ([], [], [])  # functions, arguments, answers: numbers, names, objects

    def item(self, container, key, value) -> None:
        _append(self.items, container, key, value)

    def field(self, thing, name: str, value) -> None:
        _append(self.fields, thing, name, value)

    def size(self, container) -> None:
        _append(self.sizes, container, len(container))

    def members(self, of: set | list | deque | dict) -> None:
        _append(self.wholes, of, members_of(of))

    def call(self, function: Callable, *arguments, expected) -> None:
        _append(self.calls, function, arguments, expected)

    def add(self, other: Watched) -> None:
        for name in _columns:
            for mine, column in zip(getattr(self, name), getattr(other, name), strict=True):
                mine += column

    def unchanged(self) -> bool:
        """Whether the same objects stand everywhere."""
        containers, keys, values = self.items
        things, names, found = self.fields
        try:
            return (
                list(map(len, self.sizes[0])) == self.sizes[1]
                and all(map(operator.is_, map(operator.getitem, containers, keys), values))
                and all(map(operator.is_, map(getattr, things, names), found))
                and all(map(_same_objects, map(members_of, self.wholes[0]), self.wholes[1]))
                and all(_same_answer(f(*a), then) for f, a, then in zip(*self.calls))
            )
        except (KeyError, IndexError, AttributeError):
            return False


_columns = ("items", "fields", "sizes", "wholes", "calls")


def items_of(container: Mapping):
    """What a dictionary holds, whatever its class says: that may import half a library."""
    own = isinstance(container, dict) and type(container).items not in (dict.items, OrderedDict.items)
    return dict.items(container) if own else container.items()


def members_of(container: set | list | deque | Mapping) -> list:
    """In their order; of a dictionary each key, and its value behind it."""
    return [x for item in items_of(container) for x in item] if isinstance(container, Mapping) else list(container)


def _same_objects(now: list, then: list) -> bool:
    return len(now) == len(then) and all(map(operator.is_, now, then))


def _append(columns: tuple[list, ...], *row) -> None:
    for column, x in zip(columns, row, strict=True):
        column.append(x)


def _same_answer(now, then) -> bool:
    return now is then or (type(now) is type(then) and type(then) in (int, str, bytes) and now == then)
