"""An exported folder with a file that KernelBench's own evaluator takes: a class ModelNew beside the task's Model.

What the evaluator does decides the form. It executes the file's text, so there is no `__file__`: the folder stands in the text. It
seeds, builds ModelNew as it built Model, and only then moves and casts it: so ModelNew is the task's own class with its
own constructor, and kernels are put behind it in the first call. It times under autograd: ModelNew is for inference and
switches that off. It does not look at what ran: here a call that the kernels do not serve is an error.
"""

from __future__ import annotations

import shutil
from pathlib import Path

ORIGINAL, NEW = "original.py", "model_new.py"

_text = '''"""Kernels of tessera behind the module of {original}: for KernelBench's evaluator, and for `tessera judge --reads` this folder.

{what}
Needs the package `tessera`, and the folder where it was written.
"""

import importlib.util
import sys
from pathlib import Path

import torch

FOLDER = Path({folder!r})


def _module(name):
    known = f"tessera_export_{mark}_{{name}}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, FOLDER / f"{{name}}.py")
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


_original = _module("original").{cls}
get_inputs = getattr(_module("original"), "get_inputs", None)
get_init_inputs = getattr(_module("original"), "get_init_inputs", None)


class ModelNew(_original):
    """The task's own module, whose parameters and state_dict it has. Its kernels are for the shapes and the type that were
    traced, and for inference: anything else is an error, never the original in their place."""

    def forward(self, *args, **kwargs):
        composed = self.__dict__.get("_tessera")
        if composed is None:
            plain = object.__new__(_original)
            plain.__dict__ = self.__dict__  # the same parameters, moved and cast as this module's are
            composed = self.__dict__["_tessera"] = _module("composed").load(plain, strict=True)
        with torch.no_grad():
            return composed(*args, **kwargs)

    def tessera_status(self):
        """Which kernels are active and how many calls they served."""
        return self.__dict__["_tessera"].status() if "_tessera" in self.__dict__ else None
'''


def write(folder: str, path: str, cls: str, plan: dict) -> list[str]:
    """`original.py`, the task's file as it is, and `model_new.py`, beside what export_module wrote into the folder."""
    root = Path(folder).resolve()
    shutil.copyfile(path, root / ORIGINAL)
    steps = [s for s in plan["steps"] if s["kind"] in ("kernel", "call")]
    runner = plan.get("runner", "kernels")
    what = f"It runs {len(steps)} kernels, and {plan.get('leftover_runner', 'eager')} for the rest."
    if runner != "kernels":
        what = f"No kernel gained anything: it runs the module by {runner}, which is the fastest there is."
    text = _text.format(
        original=Path(path).name, what=what, folder=str(root), cls=cls, mark=abs(hash(str(root))) % 10**9
    )
    (root / NEW).write_text(text)
    return [str(root / ORIGINAL), str(root / NEW)]
