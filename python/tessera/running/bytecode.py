"""What compiled Python code names: read, not run."""

from __future__ import annotations

import dis
import functools
import types

_loads = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_attributes = ("LOAD_ATTR", "LOAD_METHOD")
_between = ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "RESUME")


@functools.lru_cache(4096)
def loads_of(code: types.CodeType) -> frozenset[tuple[str, ...]]:
    """The names that code loads from outside, each with the attributes that it asks it for in one go: ("CFG",), ("F", "gelu")."""
    found, chain = set(), []
    for op in dis.get_instructions(code):
        if op.opname in _between:
            continue
        if op.opname in _attributes and chain:
            chain.append(op.argval)
            continue
        if chain:
            found.add(tuple(chain))
        chain = [op.argval] if op.opname in _loads else []
    if chain:
        found.add(tuple(chain))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= loads_of(constant)
    return frozenset(found)


@functools.lru_cache(4096)
def names_of(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """All names that may be of attributes, also those that `getattr` is given; and the Python modules that code imports."""
    names = {*code.co_names, *(c for c in code.co_consts if isinstance(c, str))}
    imports = {op.argval for op in dis.get_instructions(code) if op.opname == "IMPORT_NAME"}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            more = names_of(constant)
            names, imports = names | more[0], imports | more[1]
    return frozenset(names), frozenset(imports)


@functools.lru_cache(4096)
def asks_for_gradients(code: types.CodeType) -> bool:
    """Whether code takes `.grad` of something that it does not load from outside, as torch.autograd.grad is."""
    outside = False
    for op in dis.get_instructions(code):
        if op.opname in _attributes:
            if op.argval == "grad" and not outside:
                return True
        elif op.opname not in _between:
            outside = op.opname in _loads
    return any(isinstance(c, types.CodeType) and asks_for_gradients(c) for c in code.co_consts)
