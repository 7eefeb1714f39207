"""Kernels of kernel files as PyTorch operators, which torch.compile and torch.export trace through.

Two for a library: `tessera_kernels::NAME_HASH(inputs, ints) -> outputs` makes its outputs, `..._out(inputs, outputs, ints)` writes
tensors that are there. `ints` are the integers of the launch that do not follow from the tensors. A call is judged before it is
launched, on the current stream and without a synchronization; what was judged of shapes is kept for the next call.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from dataclasses import dataclass

import torch

from tessera.common.errors import Error, fail
from tessera.running.func_transforms import differentiated, transformed
from tessera.running.interface import Interface, Parameter, Shape
from tessera.running.kernels import Kernel

NAMESPACE = "tessera_kernels"
ALIGNMENT = 16  # bytes, of what a tensor begins at
_PLANS = 4096  # calls of other shapes that are kept
_library = torch.library.Library(NAMESPACE, "FRAGMENT")
_known: dict[str, Operators] = {}
_lock = threading.Lock()


@dataclass
class _Plan:
    """What follows from shapes, dtypes and the device of a call."""

    ints: list[int]
    device: torch.device
    made: list[tuple[Shape, torch.dtype]]  # outputs to be made


def operators(report: dict) -> Operators:
    """Of what `tessera build` reports; the same for the same kernel."""
    text = json.dumps([report["library"], report["hash"], report["interface"], report["arch"]], sort_keys=True)
    name = f"{report['kernel']}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    with _lock:
        if name not in _known:
            _known[name] = Operators(name, report)
        return _known[name]


class Operators:
    """`make(*inputs, ints)` and `write(*inputs, *outputs, ints)`, tensors in the order of the launch."""

    def __init__(self, name: str, report: dict):
        self.interface = Interface(report["kernel"], report["interface"])
        self.arch = report["arch"]
        self._path = report["library"]
        self._kernel: Kernel | None = None
        self._plans: dict[tuple, _Plan] = {}
        inputs, outputs = self.interface.inputs, self.interface.outputs
        self.given_to_make = self.interface.free(inputs)
        self.given_to_write = self.interface.free(self.interface.tensors)
        of_inputs = "".join(f"Tensor i{n}, " for n in range(len(inputs)))
        of_outputs = "".join(f"Tensor({chr(97 + n)}!) o{n}, " for n in range(len(outputs)))
        results = "Tensor" if len(outputs) == 1 else f"({', '.join(['Tensor'] * len(outputs))})"
        self.make = self.write = None
        if inputs:
            self.make = _register(f"{name}({of_inputs}SymInt[] ints) -> {results}", self._make, self._make_fake)
        self.write = _register(f"{name}_out({of_inputs}{of_outputs}SymInt[] ints) -> ()", self._write, lambda *a: None)

    # --- the implementations ---------------------------------------------------------------------------------------

    def _make(self, *arguments):
        tensors, given = list(arguments[:-1]), arguments[-1]
        plan = self._plan(self.interface.inputs, tensors, dict(zip(self.given_to_make, given, strict=True)))
        made = [torch.empty_strided(*s, dtype=dtype, device=plan.device) for s, dtype in plan.made]
        self._launch(plan, self.interface.inputs, tensors, self.interface.outputs, made)
        return made[0] if len(made) == 1 else tuple(made)

    def _make_fake(self, *arguments):
        """Results without elements. Only ranks are judged: what the integers may be is asked of the real call."""
        tensors, given = arguments[:-1], arguments[-1]
        for p, t in zip(self.interface.inputs, tensors, strict=True):
            self._check_rank(p, t)
        _refuse_gradients(self.interface.kernel, tensors)
        shapes = _shapes(self.interface.inputs, tensors)
        ints = self.interface.solve(shapes, dict(zip(self.given_to_make, given, strict=True)))
        made = [
            torch.empty_strided(*self.interface.made(p, ints), dtype=p.dtype, device=tensors[0].device)
            for p in self.interface.outputs
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def _write(self, *arguments):
        count = len(self.interface.inputs)
        inputs, outputs, given = list(arguments[:count]), list(arguments[count:-1]), arguments[-1]
        parameters = [*self.interface.inputs, *self.interface.outputs]
        plan = self._plan(parameters, [*inputs, *outputs], dict(zip(self.given_to_write, given, strict=True)))
        for p, t in zip(self.interface.outputs, outputs, strict=True):
            _refuse_overlap(p, t, zip(parameters, [*inputs, *outputs], strict=True))
        self._launch(plan, self.interface.inputs, inputs, self.interface.outputs, outputs)

    # --- judging a call --------------------------------------------------------------------------------------------

    def _plan(self, parameters: list[Parameter], tensors: list[torch.Tensor], given: dict[str, int]) -> _Plan:
        _refuse_gradients(self.interface.kernel, tensors)
        key = (*((t.shape, t.stride(), t.dtype, t.device) for t in tensors), *given.values())
        plan = self._plans.get(key)
        if plan is None:
            plan = self._judged(parameters, tensors, given)
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[key] = plan
        for p, t in zip(parameters, tensors, strict=True):
            if t.data_ptr() % ALIGNMENT:
                raise fail(
                    "TS0895",
                    "call.wrong_memory",
                    f"`{p.name}` of `{self.interface.kernel}` begins at an address that is not aligned",
                    expected=f"a multiple of {ALIGNMENT} bytes",
                    found=f"{t.data_ptr():#x}, {t.data_ptr() % ALIGNMENT} bytes behind one",
                    helps=["copy it with .clone()"],
                )
        return plan

    def _judged(self, parameters: list[Parameter], tensors: list[torch.Tensor], given: dict[str, int]) -> _Plan:
        for p, t in zip(parameters, tensors, strict=True):
            self._check_rank(p, t)
            if t.dtype != p.dtype:
                raise self._wrong(
                    p, str(p.dtype), str(t.dtype), "convert it with .to(dtype), or build the kernel for it"
                )
            self._check_device(p, t, tensors[0])
        shapes = _shapes(parameters, tensors)
        ints = self.interface.solve(shapes, given)
        self.interface.check(shapes, ints)
        made = [(self.interface.made(p, ints), p.dtype) for p in self.interface.outputs if p not in parameters]
        return _Plan([ints[i.name] for i in self.interface.ints], tensors[0].device, made)

    def _check_rank(self, p: Parameter, t: torch.Tensor) -> None:
        if t.dim() != len(p.extents):
            raise self._wrong(
                p, f"{len(p.extents)} dimensions: {p.text()}", f"{t.dim()}: {list(t.shape)}", "reshape the tensor"
            )

    def _check_device(self, p: Parameter, t: torch.Tensor, first: torch.Tensor) -> None:
        wanted = f"a CUDA device of compute capability 9.0 ({self.arch})"
        if t.device.type != "cuda":
            raise self._wrong(p, wanted, f"the device {t.device}", "move it with .cuda()")
        if t.device != first.device:
            raise self._wrong(
                p, f"the device {first.device}, as the other tensors", str(t.device), "move it with .to()"
            )
        if torch.cuda.get_device_capability(t.device) != (9, 0):
            found = f"{t.device}: {torch.cuda.get_device_name(t.device)}"
            raise self._wrong(p, wanted, found, "kernel files are for Hopper GPUs alone")

    def _wrong(self, p: Parameter, expected: str, found: str, help: str) -> Error:
        message = f"`{p.name}` of `{self.interface.kernel}` is not such a tensor"
        return fail("TS0892", "call.wrong_tensor", message, expected=expected, found=found, helps=[help])

    # --- launching -------------------------------------------------------------------------------------------------

    def _launch(self, plan: _Plan, inputs, input_tensors, outputs, output_tensors) -> None:
        if self._kernel is None:
            self._kernel = Kernel(self._path)
        of = {p.name: t for p, t in zip([*inputs, *outputs], [*input_tensors, *output_tensors], strict=True)}
        tensors = [of[p.name] for p in self.interface.tensors]
        current = plan.device.index == torch.cuda.current_device()
        with contextlib.nullcontext() if current else torch.cuda.device(plan.device):
            self._kernel.prepare(tensors, plan.ints)()


def _register(schema: str, real, fake):
    """The operator of this schema. `real` gets tensors of any device, and judges them."""
    name = schema[: schema.index("(")]
    _library.define(schema, tags=(torch.Tag.needs_exact_strides,))
    _library.impl(name, real, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=_library)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def _shapes(parameters: list[Parameter], tensors) -> dict[str, Shape]:
    return {p.name: (tuple(t.shape), tuple(t.stride())) for p, t in zip(parameters, tensors, strict=True)}


def _refuse_gradients(kernel: str, tensors) -> None:
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        raise _no_gradient(kernel, "a tensor with requires_grad")


def refuse_transforms(kernel: str, tensors) -> None:
    """What torch.func and forward-mode AD would differentiate. Asked before the operator is called, which sees only what their
    tensors stand for."""
    if transformed() and any(map(differentiated, tensors)):
        raise _no_gradient(kernel, "a tensor that torch.func or forward-mode AD differentiates")


def _no_gradient(kernel: str, found: str) -> Error:
    return fail(
        "TS0897",
        "call.no_gradient",
        f"`{kernel}` has no rules for derivatives, and a tensor of the call is differentiated",
        expected="tensors without gradients or tangents, or torch.no_grad()",
        found=found,
        helps=["call it under torch.no_grad(), or wrap it in a torch.autograd.Function"],
    )


def _span(t: torch.Tensor) -> tuple[int, int]:
    """The addresses from the first element to behind the last."""
    last = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    return t.data_ptr(), t.data_ptr() + (last + 1) * t.element_size()


def _refuse_overlap(p: Parameter, output: torch.Tensor, others) -> None:
    dense = 1  # elements that the dimensions so far span
    for stride, extent in sorted((s, n) for s, n in zip(output.stride(), output.shape, strict=True) if n > 1):
        if stride < dense:
            raise _overlap(p, "itself: two of its elements lie at one place")
        dense = stride * (extent - 1) + dense
    begin, end = _span(output)
    for other, t in others:
        from_, to = _span(t)
        if other.name != p.name and begin < to and from_ < end:
            raise _overlap(p, f"{other.name}")


def _overlap(p: Parameter, what: str) -> Error:
    return fail(
        "TS0895",
        "call.wrong_memory",
        f"the output `{p.name}` shares memory with {what}",
        expected="tensors that do not overlap",
        found=f"an overlap of `{p.name}` and {what}",
        helps=["give an output of its own, or leave `out=` away"],
    )
