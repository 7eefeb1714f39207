"""tessera.kernel: a kernel of a kernel file (docs/language.md), checked and built, as a function of tensors."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import torch

from tessera.api import find_binary
from tessera.common.errors import Error, fail
from tessera.common.protocol import from_the_wire
from tessera.running.kernel_ops import operators, refuse_transforms

_SHORT = {
    torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2", torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint8: "u8", torch.bool: "b1",
}  # fmt: skip
_built: dict[tuple, KernelFile] = {}
_lock = threading.Lock()


def kernel(file: str | os.PathLike, *, means: str = "", unproved: bool = False, **constants) -> KernelFile:
    """The kernel of `FILE.py`, or `FILE.py:KERNEL` where it has several, with these constants.

    constants  by the names of the kernel's file: integers, element types (`torch.float16` or "f16"), and names of functions
    means      what the kernel computes with these constants, in place of what the file says
    unproved   also take what the checker could not decide; what it refutes is refused always

    The kernel is checked for all sizes and compiled, once for the same text and constants: in this process, and on disk below
    `$TESSERA_HOME`. Errors (tessera.Error): those of the file, TS0890 where the checker could not decide, what refutes it, and those
    of the compiler.
    """
    path, name = _taken_apart(os.fspath(file))
    words = {k: _word(k, v) for k, v in constants.items()}
    options = [f"--means={means}"] * bool(means) + ["--unproved"] * unproved
    key = (path, name, _content(path), *options, *sorted(words.items()))
    if key not in _built:
        made = KernelFile(_build(path, name, words, options), (os.fspath(file), means, unproved, constants))
        with _lock:  # several threads may have built at once
            _built.setdefault(key, made)
    return _built[key]


class KernelFile:
    """A built kernel: calling it launches it on the current CUDA stream, and returns its outputs.

    `f(a, b)` takes the inputs in the order of the file, or by name. `out=` takes the output, or a tuple of them. An integer of the
    launch that does not follow from the tensors is given by its name. `.report` is what `tessera build --json` says.
    """

    def __init__(self, report: dict, made_by: tuple):
        self.report = report
        self._made_by = made_by
        self._operators = operators(report)
        interface = self._operators.interface
        self.name: str = report["kernel"]
        self.inputs: tuple[str, ...] = tuple(p.name for p in interface.inputs)
        self.outputs: tuple[str, ...] = tuple(p.name for p in interface.outputs)

    @property
    def library(self) -> Path:
        return Path(self.report["library"])

    def __call__(self, *tensors: torch.Tensor, out=None, **named):
        inputs = self._inputs(tensors, named)
        if out is None:
            self._refuse_transforms(inputs)
            make = self._operators.make
            if make is None:
                raise self._wrong("`out=`, as the kernel has no input that says where", "no tensor")
            return make(*inputs, self._ints(self._operators.given_to_make, named))
        outputs = [out] if isinstance(out, torch.Tensor) else list(out)
        if len(outputs) != len(self.outputs):
            raise self._wrong(f"`out=` with {', '.join(self.outputs)}", f"{len(outputs)} tensors")
        self._tensors(self.outputs, outputs)
        self._refuse_transforms([*inputs, *outputs])
        self._operators.write(*inputs, *outputs, self._ints(self._operators.given_to_write, named))
        return out

    def _refuse_transforms(self, tensors: list[torch.Tensor]) -> None:
        if not torch.compiler.is_compiling():
            refuse_transforms(self.name, tensors)

    def _inputs(self, tensors: tuple, named: dict) -> list[torch.Tensor]:
        """In order; those by name leave `named`."""
        if len(tensors) > len(self.inputs):
            raise self._wrong(f"{len(self.inputs)} inputs: {', '.join(self.inputs)}", f"{len(tensors)} by position")
        found = list(tensors)
        for name in self.inputs[len(tensors) :]:
            if name not in named:
                raise self._wrong(f"the inputs {', '.join(self.inputs)}", f"no `{name}`")
            found.append(named.pop(name))
        self._tensors(self.inputs, found)
        return found

    def _tensors(self, names: tuple[str, ...], found: list) -> None:
        for name, t in zip(names, found, strict=True):
            if not isinstance(t, torch.Tensor):
                raise self._wrong(f"a tensor for `{name}`", f"a {type(t).__name__}")

    def _ints(self, wanted: list[str], named: dict) -> list[int]:
        """Of what is left of the arguments by name."""
        for name in named:
            if name not in wanted:
                known = [*self.inputs, "out", *wanted]
                raise self._wrong(f"arguments among {', '.join(known)}", f"`{name}`, which the call does not take")
        for name in wanted:
            if name not in named:
                raise fail(
                    "TS0896",
                    "call.unsolved",
                    f"`{name}` of `{self.name}` does not follow from the tensors of the call",
                    expected=f"`{name}=` beside the tensors",
                    found="neither a tensor nor a number that gives it",
                    helps=[f"give `{name}=`, or the output by `out=`"],
                )
        return [named[name] for name in wanted]

    def _wrong(self, expected: str, found: str) -> Error:
        return fail(
            "TS0891",
            "call.wrong_arguments",
            f"`{self.name}` is not called like this",
            expected=expected,
            found=found,
            helps=[f"{self.name}({', '.join(self.inputs)}, out={self.outputs[0] if self.outputs else None})"],
        )

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}: {self.report['verdict']}>"

    def __deepcopy__(self, memo) -> KernelFile:
        return self

    def __reduce__(self):
        return (_again, self._made_by)


def _again(file: str, means: str, unproved: bool, constants: dict) -> KernelFile:
    return kernel(file, means=means, unproved=unproved, **constants)


def _taken_apart(text: str) -> tuple[str, str]:
    """The file's absolute path, and the kernel's name or ""; a file may have a colon in its name."""
    file, colon, name = text.rpartition(":")
    if os.path.isfile(text) or not colon:
        file, name = text, ""
    return os.path.abspath(file), name


def _content(path: str) -> str:
    """A hash of the file; "" for one that is not there, which the engine then says."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _word(name: str, value) -> str:
    """A constant as the command line has it."""
    if isinstance(value, torch.dtype) and value in _SHORT:
        return _SHORT[value]
    if isinstance(value, int | float | str):
        return str(int(value)) if isinstance(value, bool) else str(value)
    raise fail(
        "TS0038",
        "input.bad_assignment",
        f"the constant `{name}` cannot be a {type(value).__name__}",
        expected="a number, a torch.dtype, or a name",
        found=repr(value),
    )


def _build(path: str, name: str, words: dict[str, str], options: list[str]) -> dict:
    """What `tessera build` reports."""
    command = [str(find_binary()), "build", f"{path}:{name}" if name else path, "--json", "--quiet", *options]
    for key, value in words.items():
        command += ["--set", f"{key}={value}"]
    environment = os.environ | {"TESSERA_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError as e:
        raise fail(
            "TS0712",
            "process.died",
            f"`tessera build` ended without a word (exit code {done.returncode})",
            notes=done.stderr.strip().splitlines()[-12:],
            helps=["run the command that the notes are of: " + " ".join(command)],
        ) from e
    if done.returncode == 0:
        return said
    if "code" in said:
        raise Error(from_the_wire(said))
    refuted = [d for f in said["findings"] for d in f["diagnostics"]]
    faults = refuted or [d for d in said["diagnostics"] if d["level"] == "error"]
    raise Error(from_the_wire(faults[0]))
