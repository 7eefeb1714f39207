"""What is looked up on a class, and never by `__getattr__`: the special methods of containers, and what the original's class
overrides of nn.Module's."""

from __future__ import annotations

import operator
import weakref
from inspect import getattr_static

from torch import nn

_functions = {
    "__len__": len,
    "__bool__": bool,  # else that of __len__, which most modules have not
    "__iter__": iter,
    "__reversed__": reversed,
    "__getitem__": operator.getitem,
    "__setitem__": operator.setitem,
    "__delitem__": operator.delitem,
    "__contains__": operator.contains,
    "__add__": operator.add,
    "__mul__": operator.mul,
    "__rmul__": operator.mul,
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


# A call is guarded, and the others say what the composed module is.
_own = {"forward", "train", "training", "compile", "extra_repr", "_get_name"}
_own |= {name for name in vars(nn.Module) if "call_impl" in name or name.startswith("__")}
_extra_state = {"get_extra_state", "set_extra_state"}  # nn.Module asks the class for them
_of_state = {"state_dict", "load_state_dict", "_save_to_state_dict", "_load_from_state_dict"}


class _Method:
    """The original's, which gives itself where that gives the original."""

    def __init__(self, module: nn.Module, original: nn.Module, name: str):
        self.module, self.original, self.name = weakref.ref(module), original, name

    def __call__(self, *args, **kwargs):
        result = getattr(self.original, self.name)(*args, **kwargs)
        return self.module() if result is self.original else result


def give(module: nn.Module, original: nn.Module) -> None:
    """The methods and settings of nn.Module that the original's class has of its own."""
    names = {
        name
        for name in vars(nn.Module).keys() - _own
        if getattr_static(type(original), name) is not getattr_static(nn.Module, name)
    }
    for name in names | (_of_state if names & _extra_state else set()):
        value = getattr(original, name)
        module.__dict__[name] = _Method(module, original, name) if callable(value) else value
