"""Built kernels as PyTorch operators.

`operator(spec)` gives the callable `torch.ops.tessera.<name>` for a kernel library with fixed integers and fixed tensor
types. The operator's name holds a hash of everything that it depends on, so equal kernels share one operator and a
compiled graph can never meet another kernel under its name.

Two implementations, never chosen silently:
  stable-abi  ops.cpp, compiled once for a version of torch and kept in the cache. No Python on the way.
  python      the same launch by ctypes, where no C++ compiler is found; `backend().reason` tells why.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from tessera.common import places
from tessera.common.errors import Error, fail
from tessera.running.kernels import Kernel

# c10::ScalarType numbers; they are serialized in models, so they never change.
_scalar_types = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.float8_e5m2: 23,
    torch.float8_e4m3fn: 24,
}
_source = Path(__file__).with_name("ops.cpp")
input_alignment = 16  # bytes: the widest vector access that kernels make


@dataclass(frozen=True)
class TensorType:
    """Shape and strides in elements."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def matches_layout(self, t: torch.Tensor) -> bool:
        """Whether the strides address the same elements; those of dims of extent 1 are never used."""
        s = t.stride()
        return s == self.strides or all(n == 1 or a == b for n, a, b in zip(self.shape, s, self.strides, strict=True))

    def empty(self, device) -> torch.Tensor:
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device=device)


@dataclass(frozen=True)
class KernelSpec:
    """What an operator does: a library, its run-time integers, and the types of its inputs and outputs."""

    stem: str  # a readable name, the rule's
    library: str
    sha: str  # of the library's content or sources
    ints: tuple[int, ...]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]

    @functools.cached_property
    def name(self) -> str:
        parts = (self.sha or _hash_of_file(self.library), self.ints, self.inputs, self.outputs)
        stem = "".join(c if c.isalnum() else "_" for c in self.stem) or "kernel"
        return f"{stem}_{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"

    @property
    def schema(self) -> str:
        given = ", ".join(f"Tensor a{i}" for i in range(len(self.inputs)))
        made = "Tensor" if len(self.outputs) == 1 else "(" + ", ".join(["Tensor"] * len(self.outputs)) + ")"
        return f"{self.name}({given}) -> {made}"

    def code(self) -> list[int]:
        """The flat form that ops.cpp decodes."""
        out = [len(self.inputs), len(self.outputs), len(self.ints), *self.ints]
        for t in self.inputs + self.outputs:
            out += [_scalar_types[t.dtype], len(t.shape), *t.shape, *t.strides]
        return out


def _hash_of_file(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@dataclass(frozen=True)
class Backend:
    """How operators are implemented in this process, and why not by the extension."""

    kind: str  # "stable-abi" or "python"
    reason: str = ""
    handle: ctypes.CDLL | None = None


# --- the extension -------------------------------------------------------------------------------------------------


def find_compiler() -> str | None:
    return next(
        (p for name in (os.environ.get("CXX"), "g++", "c++", "clang++") if name and (p := shutil.which(name))), None
    )


def _compile_command(compiler: str, source: Path, includes: list[Path], libraries: list[str], out: str) -> list[str]:
    root = Path(torch.__file__).parent
    return [
        compiler,
        "-std=c++20",
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        *[f"-I{folder}" for folder in (*includes, root / "include")],
        str(source),
        "-o",
        out,
        f"-L{root / 'lib'}",
        "-Wl,--no-as-needed",
        *[f"-l{name}" for name in libraries],
        f"-Wl,-rpath,{root / 'lib'}",
    ]


def build_extension() -> Path:
    """The path of the operators' library. Errors: TS0320 (no compiler, no header), TS0321."""
    include = places.include_folder()
    if include is None:
        raise _no_compiler("no tessera/kernel.h", "kernels are launched")
    libraries = ["torch_cpu", "c10"]
    if (Path(torch.__file__).parent / "lib" / "libtorch_cuda.so").exists():
        libraries.append("torch_cuda")
    content = (include / "tessera" / "kernel.h").read_bytes()
    return compiled(_source, [include], libraries, content, "kernels are launched")


def compiled(source: Path, includes: list[Path], libraries: list[str], content: bytes, then: str) -> Path:
    """The library of a C++ file of this folder, compiled for this torch when the cache does not have it. `content`: what else it is
    made of. `then`: what is done by Python without it. Errors: TS0320 (no compiler), TS0321."""
    compiler = find_compiler()
    key = hashlib.sha256()
    for text in (torch.__version__, str(torch.version.cuda), sys.platform, Path(torch.__file__).parent.as_posix()):
        key.update(text.encode() + b"\0")
    key.update(source.read_bytes() + content)
    target = places.extensions_folder() / f"{source.stem}-{key.hexdigest()[:16]}.so"
    if target.is_file():
        return target
    if compiler is None:
        raise _no_compiler("no compiler", then)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it
        if target.is_file():
            return target
        command = _compile_command(compiler, source, includes, libraries, f"{target}.made")
        done = _lasting(command, target, lock.fileno())
    if done.returncode != 0:
        raise fail(
            "TS0321",
            "build.extension_failed",
            f"the extension `{source.name}` does not compile",
            expected=f"a C++20 compiler and the headers of torch {torch.__version__}",
            found=done.stderr.strip()[-2000:],
            notes=[" ".join(command)],
            helps=[f"set CXX to another compiler; until then {then} from Python"],
        )
    return target


def _lasting(command: list[str], target: Path, lock: int) -> subprocess.CompletedProcess:
    """Makes `target` by `target`.made. Goes on, and holds the lock, where this process ends first: else short runs would begin one
    after the other and none would end."""
    made = 'target=$1; shift; "$@" && mv -f "$target.made" "$target"'
    return subprocess.run(
        ["sh", "-c", made, "sh", str(target), *command],
        capture_output=True,
        text=True,
        check=False,
        pass_fds=(lock,),
        start_new_session=True,
    )


def _no_compiler(found: str, then: str) -> Error:
    return fail(
        "TS0320",
        "build.no_extension_compiler",
        "no C++ compiler for the extension",
        expected="g++ or clang++ in PATH (or $CXX), and tessera/kernel.h in the package",
        found=found,
        helps=[f"install g++ (C++20); until then {then} from Python, some microseconds slower"],
    )


def backend() -> Backend:
    """The implementation of this process, found once. `TESSERA_EXTENSION=python` asks for the Python one."""
    with _finding:
        return _backend()


def build_early(*others: Callable) -> None:
    """Begins to find the implementation, whose compiler takes seconds, on a thread that gives way to others; then calls these."""

    def find() -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)  # of the thread, and what it starts
        for find_one in (backend, *others):
            find_one()

    threading.Thread(target=find, name="tessera extension", daemon=True).start()


_finding = threading.Lock()


@functools.cache
def _backend() -> Backend:
    if os.environ.get("TESSERA_EXTENSION") == "python":
        return Backend("python", "asked for by TESSERA_EXTENSION=python")
    try:
        handle = ctypes.CDLL(str(build_extension()))
    except Error as e:
        return Backend("python", str(e))
    except OSError as e:
        return Backend("python", f"the operator extension does not load: {e}")
    handle.tessera_ops_register.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64)]
    handle.tessera_ops_error.restype = ctypes.c_char_p
    for name in ("tessera_ops_calls", "tessera_ops_relayouts"):
        getattr(handle, name).restype = ctypes.c_int64
    return Backend("stable-abi", handle=handle)


# --- the Python implementation -------------------------------------------------------------------------------------


class PythonKernel:
    """One kernel launched by ctypes: the same steps as `call` in ops.cpp."""

    def __init__(self, spec: KernelSpec):
        self.spec, self.kernel = spec, Kernel(spec.library)
        self.calls = self.relayouts = 0

    def _input(self, i: int, t: torch.Tensor) -> torch.Tensor:
        want = self.spec.inputs[i]
        if t.dtype != want.dtype or tuple(t.shape) != want.shape:
            raise RuntimeError(
                f"tessera::{self.spec.name}: input {i} has shape {list(t.shape)} and type {t.dtype}; "
                f"the kernel was built for {list(want.shape)} and {want.dtype}"
            )
        if want.matches_layout(t) and t.data_ptr() % input_alignment == 0:
            return t
        self.relayouts += 1
        return want.empty(t.device).copy_(t)

    def __call__(self, *tensors: torch.Tensor):
        device = tensors[0].device
        given = [self._input(i, t) for i, t in enumerate(tensors)]
        made = [t.empty(device) for t in self.spec.outputs]
        with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
            self.kernel.prepare(given + made, list(self.spec.ints))()
        self.calls += 1
        return made[0] if len(made) == 1 else tuple(made)


# --- operators -----------------------------------------------------------------------------------------------------


@dataclass
class Operator:
    """A registered operator: `op` is what graphs call."""

    spec: KernelSpec
    name: str
    op: object  # torch.ops.tessera.<name>.default
    kind: str
    _slot: int = -1
    _python: PythonKernel | None = None

    def _count(self, name: str) -> int:
        if self._python is not None:
            return getattr(self._python, name)
        return int(getattr(backend().handle, f"tessera_ops_{name}")(self._slot))

    @property
    def calls(self) -> int:
        """Launches so far in this process, by whichever module; replays of a CUDA graph do not count."""
        return self._count("calls")

    @property
    def relayouts(self) -> int:
        """Inputs copied into the traced layout so far, because they came with other strides or unaligned."""
        return self._count("relayouts")


_library = torch.library.Library("tessera", "FRAGMENT")
_operators: dict[str, Operator] = {}
_lock = threading.Lock()


def operator(spec: KernelSpec, implementation: str | None = None) -> Operator:
    """Registers (once) and returns the operator of a kernel. `implementation` overrides the process's backend and gives
    an operator of its own name. Errors: TS0322 when the library is missing, TS0310 when it does not load."""
    kind = implementation or backend().kind
    if not os.path.isfile(spec.library):
        raise fail(
            "TS0322",
            "build.no_kernel_library",
            f"the kernel library {spec.library} is missing",
            helps=["run the optimization again: it rebuilds what the cache has lost"],
        )
    name = spec.name if kind == backend().kind else f"{spec.name}_{kind.replace('-', '_')}"
    with _lock:
        if name not in _operators:
            _operators[name] = _register(spec, name, kind)
        return _operators[name]


def _register(spec: KernelSpec, name: str, kind: str) -> Operator:
    """Whatever may fail comes before the schema is defined, which cannot be taken back."""
    probe = PythonKernel(spec)  # loads the library, with torch's OpenMP threads
    made = Operator(spec, name, None, kind)
    if kind == "python":
        made._python = probe
    else:
        code = spec.code()
        handle = backend().handle
        made._slot = handle.tessera_ops_register(
            name.encode(), spec.library.encode(), (ctypes.c_int64 * len(code))(*code)
        )
        if made._slot < 0:
            raise fail(
                "TS0322",
                "build.no_kernel_library",
                f"the kernel library {spec.library} cannot be used",
                found=handle.tessera_ops_error().decode(errors="replace"),
            )
    _library.define(
        spec.schema.replace(spec.name, name, 1), tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
    )
    for key in ("CPU", "CUDA") if kind == "python" else ():
        _library.impl(name, probe, key)
    torch.library.register_fake(f"tessera::{name}", _fake(spec), lib=_library)
    made.op = getattr(torch.ops.tessera, name).default
    return made


def _fake(spec: KernelSpec):
    def fake(*tensors):
        made = [t.empty(tensors[0].device) for t in spec.outputs]
        return made[0] if len(made) == 1 else tuple(made)

    return fake
