"""The special methods of containers, which Python looks up on a class and never by `__getattr__`."""

from __future__ import annotations

import operator

_functions = {
    "__len__": len,
    "__bool__": bool,  # else that of __len__, which most modules have not
    "__iter__": iter,
    "__reversed__": reversed,
    "__getitem__": operator.getitem,
    "__setitem__": operator.setitem,
    "__delitem__": operator.delitem,
    "__contains__": operator.contains,
    "__enter__": lambda original: type(original).__enter__(original),
    "__exit__": lambda original, *error: type(original).__exit__(original, *error),
}


class SpecialMethods:
    """Those of `self.original`, an nn.Sequential say. Errors: Python's own, where the original has none."""


def _of_original(name: str, function):
    def method(self, *args):
        return function(self.original, *args)

    method.__name__ = name
    return method


for _name, _function in _functions.items():
    setattr(SpecialMethods, _name, _of_original(_name, _function))
