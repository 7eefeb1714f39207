"""A module and its inputs from a Python file: KernelBench problem files, or any file with one module class."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.errors import Error, fail


@dataclass
class Loaded:
    module: nn.Module
    args: tuple
    kwargs: dict
    name: str
    path: str


class ProblemFile:
    """A problem file that was imported: its class (`class_name`, else `Model`, else the only one), with modules and inputs of
    any seed. A class may have its own get_inputs and get_init_inputs as static methods. Raises tessera.Error."""

    def __init__(self, path: str, class_name: str | None = None):
        self.path = path
        self._source = _import(path)
        self.cls = _pick(self._source, path, class_name)

    def init_inputs(self) -> tuple[tuple, dict]:
        """What the class is built from, by get_init_inputs()."""
        return _init_inputs(self._source, self.cls, self.path)

    def build(self, init: tuple[tuple, dict]) -> nn.Module:
        try:
            return self.cls(*init[0], **init[1])
        except Exception as e:  # noqa: BLE001 - the user's code
            raise _user_error(
                "TS0006",
                "input.construction_failed",
                f"building `{self.cls.__name__}` failed",
                self.path,
                e,
                ["give the constructor's arguments by get_init_inputs()"],
            ) from e

    def inputs(self) -> tuple[tuple, dict]:
        """A call's arguments, by get_inputs() or example_inputs."""
        return _inputs(self._source, self.cls, self.path)


def load_problem(path: str, class_name: str | None = None, device: str = "cpu", seed: int = 0) -> Loaded:
    """A module of a problem file, with the arguments of a call. Raises tessera.Error."""
    file = ProblemFile(path, class_name)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = file.build(file.init_inputs())
        args, kwargs = file.inputs()
    module.to(device)
    args, kwargs = pytree.tree_map(lambda x: x.to(device) if isinstance(x, torch.Tensor) else x, (args, kwargs))
    return Loaded(module, tuple(args), kwargs, file.cls.__name__, os.path.abspath(path))


def _import(path: str):
    if not os.path.isfile(path):
        raise fail("TS0001", "input.no_such_file", f"there is no file `{path}`")
    stem = "tessera_problem_" + os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(stem, path)
    if spec is None or spec.loader is None:
        raise fail("TS0002", "input.import_failed", f"`{path}` is no Python file", expected="a file NAME.py")
    source = importlib.util.module_from_spec(spec)
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:  # where it stays, as for a script: the file may import what lies beside it in a call
        sys.path.insert(0, folder)
    sys.modules[stem] = source
    try:
        spec.loader.exec_module(source)
    except BaseException as e:  # noqa: BLE001 - the user's code, also sys.exit at import
        if isinstance(e, KeyboardInterrupt):
            raise
        sys.modules.pop(stem, None)
        helps = (
            [f"install what it needs: pip install {e.name}"] if isinstance(e, ModuleNotFoundError) and e.name else []
        )
        raise _user_error("TS0002", "input.import_failed", f"importing `{path}` failed", path, e, helps) from e
    return source


def _classes(source) -> dict[str, type]:
    """The file's own module classes; without any, those that it imports from elsewhere than torch."""
    every = {n: c for n, c in vars(source).items() if inspect.isclass(c) and issubclass(c, nn.Module)}
    own = {n: c for n, c in every.items() if c.__module__ == source.__name__}
    return own or {n: c for n, c in every.items() if c.__module__.partition(".")[0] != "torch"}


def _pick(source, path: str, class_name: str | None) -> type:
    classes = _classes(source)
    names = ", ".join(classes) or "none"
    if class_name:
        if class_name in classes:
            return classes[class_name]
        if isinstance(vars(source).get(class_name), type) and issubclass(vars(source)[class_name], nn.Module):
            return vars(source)[class_name]
        raise fail(
            "TS0003",
            "input.no_such_class",
            f"`{path}` has no module class `{class_name}`",
            found=f"its classes: {names}",
            helps=[f"name one of them: {path}:{next(iter(classes))}"] if classes else [],
        )
    given = vars(source).get("Model")
    if inspect.isclass(given) and issubclass(given, nn.Module):
        return given
    if len(classes) == 1:
        return next(iter(classes.values()))
    if not classes:
        raise fail(
            "TS0003",
            "input.no_such_class",
            f"`{path}` has no class that derives from torch.nn.Module",
            helps=["define `class Model(torch.nn.Module)`"],
        )
    raise fail(
        "TS0003",
        "input.no_such_class",
        f"`{path}` has several module classes and none is called Model",
        found=f"its classes: {names}",
        helps=[f"name one of them: {path}:{list(classes)[-1]}"],
    )


def _lookup(source, cls: type, name: str):
    """The class's own, else the file's."""
    own = inspect.getattr_static(cls, name, None)
    return getattr(cls, name) if own is not None else getattr(source, name, None)


def _init_inputs(source, cls: type, path: str) -> tuple[tuple, dict]:
    make = _lookup(source, cls, "get_init_inputs")
    if make is None:
        return (), {}
    try:
        made = make()
    except Exception as e:  # noqa: BLE001
        raise _user_error("TS0005", "input.inputs_failed", "get_init_inputs() failed", path, e, []) from e
    if isinstance(made, dict):
        return (), made
    if len(made) == 2 and isinstance(made[0], (list, tuple)) and isinstance(made[1], dict):
        return tuple(made[0]), made[1]
    return tuple(made), {}


def _inputs(source, cls: type, path: str) -> tuple[tuple, dict]:
    make = _lookup(source, cls, "get_inputs")
    if make is None:
        make = _lookup(source, cls, "example_inputs")
    if make is None:
        raise fail(
            "TS0004",
            "input.no_inputs",
            f"`{path}` does not say what `{cls.__name__}` is called with",
            expected="a function get_inputs() that returns the list of forward's arguments",
            helps=["add e.g. `def get_inputs(): return [torch.randn(8, 256)]`"],
        )
    try:
        made = make() if callable(make) else make
    except Exception as e:  # noqa: BLE001
        raise _user_error("TS0005", "input.inputs_failed", "get_inputs() failed", path, e, []) from e
    if isinstance(made, torch.Tensor):
        return (made,), {}
    if isinstance(made, dict):
        return (), made
    return tuple(made), {}


def _user_error(code: str, name: str, message: str, path: str, e: BaseException, helps: list[str]) -> Error:
    """The place is the last line of the traceback that lies in the user's file, or where the syntax error is."""
    line = e.lineno if isinstance(e, SyntaxError) and e.lineno else 0
    file = path
    for frame in traceback.extract_tb(e.__traceback__):
        if os.path.abspath(frame.filename) == os.path.abspath(path):
            line = frame.lineno or line
    made = fail(code, name, f"{message}: {type(e).__name__}: {e}", helps=helps)
    made.diagnostic["place"] = {"file": file, "line": line, "column": 0}
    return made
