"""The words of kernel files (docs/language.md), so that editors, formatters and type checkers read them as Python.

    from __future__ import annotations
    from tessera.language import *

tessera's compiler reads the text of a kernel file by itself; Python never runs one. The names here carry types and
documentation, importing a kernel file works, and calling what is made here fails with a word of explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn


class NotPython(RuntimeError):
    """A word of the kernel language was run by Python."""


def _refuse(name: str) -> NoReturn:
    raise NotPython(
        f"`{name}` is a word of tessera's kernel language: tessera compiles the file, Python does not run it"
    )


class Word:
    """What a kernel file names: anything can be written with it, and nothing of that can be run."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __getattr__(self, name: str) -> Word:
        if name.startswith("__"):
            raise AttributeError(name)
        return Word(f"{self._name}.{name}")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        _refuse(self._name)

    def __getitem__(self, index: Any) -> Any:
        _refuse(self._name)

    def __enter__(self) -> Any:
        _refuse(self._name)

    def __exit__(self, *error: object) -> None:
        _refuse(self._name)

    def __bool__(self) -> bool:
        _refuse(self._name)

    def __iter__(self) -> Iterator[Any]:
        _refuse(self._name)


def kernel(
    function: Callable | None = None,
    *,
    threads: int | str = 0,
    cluster: int | str = 1,
    min_blocks: int | str = 1,
    means: str = "",
) -> Any:
    """Marks a function as a kernel. `threads` of a block are said where no roles say them; `means` is what it computes.

    Numbers may be names of the kernel's constants.
    """
    if function is None:
        return lambda f: kernel(f, threads=threads, cluster=cluster, min_blocks=min_blocks, means=means)
    return Word(function.__name__)


# Types of elements, and of a kernel's parameters.
bf16, f16, f32, f64, e4m3, e5m2, i64, i32, i16, i8, u8, b1 = (
    Word(n) for n in ("bf16", "f16", "f32", "f64", "e4m3", "e5m2", "i64", "i32", "i16", "i8", "u8", "b1")
)
Tensor: Any = Word(
    "Tensor"
)  # Tensor[bf16, "M", "K"], Tensor[f32, "M", 128, out], Tensor[f32, "M", "N", strides("S", 1)]
out, workspace = Word("out"), Word("workspace")
const, fn = Word("const"), Word("fn")


def index(multiple: int = 1, at_least: int = 1, below: int = 1 << 31) -> Any:
    """The type of an integer of the launch, with what is known of it."""
    return Word("index")


def strides(*elements: int | str) -> Any:
    """Of a tensor's dimensions, in elements; without it, or without any, a tensor is row-major."""
    return Word("strides")


# Storage.
def shared(element: Word, extents: list[int], swizzle: int = 0, contiguous: int = -1) -> Any:
    """Shared memory of the block, its last extent contiguous; a swizzle of 32, 64 or 128 has rows of as many bytes.

    `contiguous`: the one of the last two dimensions that lies side by side, in panels as wide as the swizzle.
    """
    _refuse("shared")


def registers(element: Word, extents: list[int], layout: str = "") -> Any:
    """A tile in the registers of the role's threads; the first instruction that takes it, or `layout`, says how it lies."""
    _refuse("registers")


def zeros(element: Word, extents: list[int]) -> Any:
    """Registers that hold zeros."""
    _refuse("zeros")


def load(box: Any, fill: float = 0.0, lanes: int = 0, like: Any = None) -> Any:
    """A box of a tensor in registers; what lies outside of the tensor is `fill`. `lanes`: threads along a row.

    `like`: registers that the box goes together with, and lies in the threads as. A matrix of shared memory in the
    place of a box has neither `fill` nor `lanes`.
    """
    _refuse("load")


# Threads.
def tag(of: Any, **names: Callable[..., Any]) -> None:
    """What each element of a tensor or of registers carries, a function of its indices for each name."""
    _refuse("tag")


def reset_tags(of: Any, *names: str) -> None:
    """The elements carry nothing under these names from here on."""
    _refuse("reset_tags")


def assert_tag(of: Any, **names: Callable[..., Any]) -> None:
    """What each element has to carry, a function of its indices for each name; `tessera check` proves it."""
    _refuse("assert_tag")


def assert_same(x: Any, y: Any, *names: str, axis: int | None = None) -> None:
    """Elements of both carry the same; with `axis`, all that have one index along it. `tessera check` proves it."""
    _refuse("assert_same")


def assert_apart(x: Any, y: Any, *names: str, axis: int | None = None) -> None:
    """No element of one carries what one of the other does. `tessera check` proves it."""
    _refuse("assert_apart")


def role(name: str, warpgroups: int = 0, warps: int = 0, registers: int | str = 0) -> Any:
    """Warps that do one thing, with the registers that each thread has; "rest": what the other roles leave."""
    _refuse("role")


def one_thread(of: str = "role") -> Any:
    """One thread of the role, of each "warpgroup", or of each "warp"."""
    _refuse("one_thread")


def sync(of: str = "role") -> None:
    """All threads of the role, of the "warpgroup" or of the "cluster" wait for each other."""
    _refuse("sync")


warp, warpgroup, lane, block, blocks, rank = (Word(n) for n in ("warp", "warpgroup", "lane", "block", "blocks", "rank"))


# Loops.
def unrolled(count: int) -> Any:
    """A loop of known length whose counter may choose registers."""
    _refuse("unrolled")


def static_range(count: int) -> Any:
    """Turns written one by one, with numbers that are known."""
    _refuse("static_range")


def part(index: int, size: int) -> Any:
    """The elements [index * size, (index + 1) * size)."""
    _refuse("part")


def parts(extent: int, size: int) -> Any:
    """An extent in parts, unrolled."""
    _refuse("parts")


def ring(extent: int, size: int, stages: int) -> Any:
    """An extent in parts that pass through the slots of a ring; one counter gives slot and phase."""
    _refuse("ring")


def next_turns(steps: Any, work: Any) -> Any:
    """Behind a loop over tiles with one over a ring in it: the turns that would come next, one for each slot."""
    _refuse("next_turns")


def tiles(
    *extents: int,
    group: int = 1,
    persistent: bool = True,
    alternate: bool = False,
    even: bool = False,
    cluster: str = "",
    stages: int = 0,
) -> Any:
    """The tiles of rows, of rows and columns, or with batches in front: an extent and a size by turns.

    `even`: as few blocks as take no more turns than all would.
    `cluster`: the blocks of a cluster have tiles one above the other ("rows"), or side by side ("columns").
    `stages`: the turns of the loop, `.turn`, pass through so many slots.
    """
    _refuse("tiles")


# Elements.
def identity(x: Any) -> Any:
    """x itself: the epilogue that does nothing."""
    _refuse("identity")


def amax(x: Any, axis: int) -> Any:
    """The greatest element along a dimension, which is left with one element."""
    _refuse("amax")


def lane_sum(x: Any, axis: int) -> Any:
    """Sums along a dimension of what each lane has, which is left with one element a lane."""
    _refuse("lane_sum")


def indices(x: Any, axis: int) -> Any:
    """The index of each element along a dimension, an integer of the element."""
    _refuse("indices")


def cdiv(a: int, b: int) -> int:
    """a / b rounded up."""
    _refuse("cdiv")


def named_barrier(count: int, threads: int) -> Any:
    """Named barriers of the block, each of whose turns so many threads come to."""
    _refuse("named_barrier")


def issue(form: str, *operands: Any, **named: Any) -> None:
    """An instruction by its name in docs/instructions.md."""
    _refuse("issue")


def store_rows(values: Any, to: Any) -> None:
    """Each warpgroup's 64 rows of a product's sums, of 32 bits, to shared memory of its own."""
    _refuse("store_rows")


def tensor_map(box: Any, part: Any) -> Any:
    """The tensor map for boxes like this one, for `issue`."""
    _refuse("tensor_map")


inf = float("inf")

# Words that have instructions behind a dot as well: barrier(4) and barrier.sync(1, 128).
barrier, wgmma, stmatrix, store = (Word(n) for n in ("barrier", "wgmma", "stmatrix", "store"))
atomic, bulk, cache, cluster, cp_async, cp_async_4, cp_async_8, cp_async_16 = (
    Word(n) for n in ("atomic", "bulk", "cache", "cluster", "cp_async", "cp_async_4", "cp_async_8", "cp_async_16")
)
fence, flag, grid, ldmatrix, mbarrier, reduce, setmaxnreg, shuffle, tma, vote = (
    Word(n) for n in ("fence", "flag", "grid", "ldmatrix", "mbarrier", "reduce", "setmaxnreg", "shuffle", "tma", "vote")
)

# Functions of single elements; `min`, `max`, `sum`, `abs`, `pow` and `round` go by Python's own names.
relu, silu, sigmoid, tanh, gelu_erf, gelu_tanh, exp, exp2, log, log2, sqrt, rsqrt, erf, maximum, minimum, where = (
    Word(n)
    for n in (
        *("relu", "silu", "sigmoid", "tanh", "gelu_erf", "gelu_tanh", "exp", "exp2", "log", "log2", "sqrt", "rsqrt"),
        *("erf", "maximum", "minimum", "where"),
    )
)
round_tf32, round_tf32_finite = (Word(n) for n in ("round_tf32", "round_tf32_finite"))

__all__ = [
    name
    for name in dir()
    if not name.startswith("_") and name not in ("Any", "Callable", "Iterator", "NoReturn", "annotations")
]
