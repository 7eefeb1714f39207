"""What calls of a module do in Python beside computing tensors, found by calling it: before it is traced, for a trace holds tensors
alone. What is made once and then stays is kept as a call leaves it; what each call changes cannot be traced as one graph."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import warnings
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from unittest.mock import patch

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.errors import BY_GRAPHS, Error, fail
from tessera.common.laid import is_strided
from tessera.running.result_objects import tensors_of
from tessera.running.surroundings import SETTINGS
from tessera.tracing.argument_copies import copies_of_all
from tessera.tracing.laid_results import Laid, laid
from tessera.tracing.picture import Picture, marks_of
from tessera.tracing.written import form_of

MOST_NAMED = 4
_SEED = 0x7E55E7A  # that no forward takes by itself


@dataclass
class Changes:
    """`made`: attributes that the first call made, and that stay. `reasons`: what each call does anew, and what a call takes away.
    `results`: how the tensors that a call returns lie, none for one that is not strided."""

    made: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    results: list[Laid | None] = field(default_factory=list)


def changes_of_calls(module: nn.Module, args: tuple, kwargs: dict, other: Callable[[], tuple]) -> Changes:
    """Calls the module once where it changes nothing, else up to four times. It is left as it was, but for what the first call
    makes and later ones leave alone. `other`: gives arguments with other values. Error: TS0007 where the module itself fails; TS0202
    of what no call may change that nobody made, or that Dynamo loses: eager runs such a module."""
    _refuse_what_runs_once(module, args, kwargs)
    lazy = [name for name, p in module.named_parameters() if isinstance(p, nn.parameter.UninitializedTensorMixin)]
    if lazy:
        _materialize(module, args, kwargs)
    before = Picture(module)
    first = _called(module, args, kwargs, before)
    changed = before.changed()
    if chances := before.chances():
        before.restore()
        raise _only_eager(f"it draws random numbers of {listed(chances)}, for which Dynamo has one number")
    if not changed or first.reasons:
        before.restore()
        return Changes(lazy, [*first.reasons, *_assigned(changed)] if first.reasons else [], first.results)
    if lost := before.lost():
        before.restore()
        return Changes(reasons=_assigned(lost))
    results = [t.clone() for t in first.tensors]
    before.restore(python=False)  # what it computes with what was made, and nothing else, is compared
    after = Picture(module)
    made = {name: t for name, t in after.tensors().items() if before.tensors().get(name) is not t}
    try:
        second = _called(module, args, kwargs, after)
    except Error:  # of what the first one left
        before.restore()
        return Changes(reasons=_assigned(changed))
    # What export follows in place too: the first call of the user's is to begin with it as it is made.
    again = [*after.changed(), *after.written(made)]
    if again or second.reasons:
        before.restore()
        return Changes(reasons=[*second.reasons, *_assigned(list(dict.fromkeys(again)))])
    if not _alike(results, second.tensors):
        before.restore()
        return Changes(
            reasons=[f"{listed(changed)}: the call that makes it computes otherwise than those that find it"]
        )
    if from_inputs := _differing(module, before, made, other):
        before.restore()
        return Changes(reasons=[f"{listed(from_inputs)}: the first call makes it of the values of its inputs"])
    after.restore()
    before.restore(python=False)
    return Changes([*lazy, *changed], results=second.results)


def _refuse_what_runs_once(module: nn.Module, args: tuple, kwargs: dict) -> None:
    given = {"arguments": [x for x in pytree.tree_leaves((args, kwargs)) if not isinstance(x, torch.Tensor)]}
    if once := Picture(module, given).once():
        raise _only_eager(f"{listed(once)}: a generator, an iterator or a file, which no call may use that nobody made")


def _only_eager(reason: str) -> Error:
    return fail(
        "TS0202",
        "graph.untraceable",
        f"a call does more than compute tensors, and no graph holds that: {reason}",
        helps=["without it the module can be traced", BY_GRAPHS],
        data={"changes": [reason], "differs": True},
    )


def _materialize(module: nn.Module, args: tuple, kwargs: dict) -> None:
    """Lazy modules make their parameters in a call, of numbers that the user has seeded; statistics are to stay as they are made."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    given = copies_of_all(args, kwargs, Picture(module).objects())
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            module(*given[0], **given[1])
    except Exception as e:
        raise module_fails(e) from e
    finally:
        for m, training in modes:
            m.training = training


def _differing(
    module: nn.Module, before: Picture, made: dict[str, torch.Tensor], other: Callable[[], tuple]
) -> list[str]:
    """Names of the tensors that a first call with other arguments makes with other content."""
    if not made:
        return []
    then = {name: t.detach().clone() for name, t in made.items()}
    before.restore()
    with contextlib.suppress(Exception):  # values that fit together may not when they are drawn anew
        _called(module, *other(), before)
    now = Picture(module).tensors()
    return [name for name, t in then.items() if name in now and not _equal(t, now[name])]


def _alike(first: list[torch.Tensor], later: list[torch.Tensor]) -> bool:
    """But for roundings: some ops add up in another order each time."""
    if len(first) != len(later):
        return False
    return all(
        a.shape == b.shape and (_equal(a, b) or (a.is_floating_point() and bool(_near(a, b).all())))
        for a, b in zip(first, later, strict=True)
    )


def _near(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    size = a[a.isfinite()].abs().mean() if bool(a.isfinite().any()) else 0.0
    return (a == b) | ((a != a) & (b != b)) | ((a - b).abs() <= 1e-3 * (a.abs() + size))


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    return not is_strided(a) or bool(((a == b) | ((a != a) & (b != b))).all())


def module_fails(e: Exception) -> Error:
    return fail(
        "TS0007",
        "input.module_fails",
        f"the module itself fails on its inputs: {type(e).__name__}: {e}",
        helps=["make `module(*inputs)` run in eager PyTorch first"],
    )


@contextlib.contextmanager
def undone(module: nn.Module, args: tuple, kwargs: dict) -> Iterator[Callable[[], tuple[tuple, dict]]]:
    """Puts back what calls in here change. Gives a function that does so too, and gives copies of the arguments for the next ones.
    What a call writes over is found by one before, since code that is compiled cannot be watched. Error: TS0007."""
    before = Picture(module)
    _called(module, args, kwargs, before)

    def again() -> tuple[tuple, dict]:
        before.restore()
        return copies_of_all(args, kwargs, before.objects())

    try:
        yield again
    finally:
        before.restore()


def fails(module: nn.Module, args: tuple, kwargs: dict) -> Error | None:
    """What a call raises, if it raises; nothing of it stays, neither in the module nor in the arguments."""
    before = Picture(module)
    try:
        _called(module, args, kwargs, before)
    except Error as e:
        return e
    finally:
        before.restore()
    return None


@dataclass
class _Call:
    reasons: list[str]
    tensors: list[torch.Tensor]  # that it returns

    @property
    def results(self) -> list[Laid | None]:
        return [laid(t) for t in self.tensors]


@contextlib.contextmanager
def _modes() -> Iterator[list[str]]:
    """Gets what a call leaves otherwise among torch's own settings. That of gradients and the default dtype are put back."""

    def now() -> dict:
        return {"torch.is_grad_enabled()": torch.is_grad_enabled(), **{s.what: s.now() for s in SETTINGS}}

    left, before, dtype = [], now(), torch.get_default_dtype()
    try:
        with torch.set_grad_enabled(torch.is_grad_enabled()):
            yield left
            left += [f"it leaves {what} at {after}" for what, after in now().items() if after != before[what]]
    finally:
        torch.set_default_dtype(dtype)


def _called(module: nn.Module, args: tuple, kwargs: dict, picture: Picture) -> _Call:
    """A call on copies of the tensors, whose numbers are drawn alike each time, and what it did besides. `picture`: gets what the
    call writes over. Error: TS0007."""
    try:
        return _watched(module, args, kwargs, picture.saving(), picture.objects())
    except Exception:  # noqa: BLE001 - some operators run under no such mode; what the module itself raises comes again
        picture.restore()
        picture.save_all()
    try:
        return _watched(module, args, kwargs, contextlib.nullcontext(), picture.objects())
    except Exception as e:
        picture.restore()
        raise (
            e if isinstance(e, Error) else module_fails(e)
        ) from e  # a form that we refuse is no failure of the module's


def _watched(
    module: nn.Module,
    args: tuple,
    kwargs: dict,
    saving: contextlib.AbstractContextManager,
    own: dict[int, object],
) -> _Call:
    given = copies_of_all(args, kwargs, own)
    leaves, form = pytree.tree_flatten(given)
    objects = Picture(_Nothing(), {"arguments": [x for x in leaves if not isinstance(x, torch.Tensor)]})
    # Without Dynamo: what it fails to compile under such a mode it would not try again without.
    eager = torch.compiler.set_stance("force_eager")
    with eager, random_numbers() as drawn, silent() as heard, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the trace says them
        with torch.no_grad(), torch.random.fork_rng(devices=_cuda_devices()), saving:
            torch.manual_seed(_SEED)
            with _seeds() as seeds, _modes() as modes:
                results = module(*given[0], **given[1])
    call = _Call([*drawn, *seeds, *modes], tensors_of(results))
    call.reasons += _marked([*leaves, *call.tensors], {*own, *map(id, module.parameters()), *map(id, module.buffers())})
    call.reasons += _leaves_made(call.tensors, {*own, *map(id, (*leaves, *module.parameters(), *module.buffers()))})
    if heard.getvalue():
        call.reasons.append(f"it prints ({heard.getvalue().strip()[:40]!r})")
    pairs = zip(pytree.tree_leaves((tuple(args), dict(kwargs))), leaves, strict=True)
    tensors = [(t, c) for t, c in pairs if isinstance(t, torch.Tensor) and is_strided(t)]
    if any(form_of(c)[:2] != form_of(t)[:2] for t, c in tensors):
        call.reasons.append("it changes the shape of an argument")
    now, form_now = pytree.tree_flatten(given)
    if objects.changed() or form_now != form or any(a is not b for a, b in zip(now, leaves)):
        call.reasons.append("it changes an argument that is no tensor")
    objects.restore()
    return call


def _marked(values: list, older: Container[int]) -> list[str]:
    """Attributes that forward gave what it returns, or copies of what it was given."""
    new = [t for t in values if type(t) is torch.Tensor and id(t) not in older]
    names = dict.fromkeys(k for t in new for k in marks_of(t))
    return [f"it sets {listed(list(names))} of a tensor that others see"] if names else []


def _leaves_made(results: list, older: Container[int]) -> list[str]:
    """What gradients are to be recorded of, or is a parameter, and was made by a call that records none. Views of one that records them
    say that they do, too."""
    new = [t for t in results if id(t) not in older and (t._base is None or not t._base.requires_grad)]
    made = any(t.is_leaf and (t.requires_grad or isinstance(t, nn.Parameter)) for t in new)
    return ["it returns a leaf of gradients that it makes"] if made else []


@contextlib.contextmanager
def _seeds() -> Iterator[list[str]]:
    """Says at the end whether torch's generators of random numbers were seeded or set in here."""
    said: list[str] = []
    set_state, begin = torch.set_rng_state, _initial_seeds()

    def noted(*given, **named) -> None:
        said.append("it sets the state of torch's random numbers")
        set_state(*given, **named)

    with patch.object(torch, "set_rng_state", noted), patch.object(torch.random, "set_rng_state", noted):
        yield said
    if _initial_seeds() != begin:
        said.append("it seeds torch's random numbers")
    said[:] = list(dict.fromkeys(said))


def _initial_seeds() -> list[int]:
    return [torch.initial_seed(), *([torch.cuda.initial_seed()] if torch.cuda.is_initialized() else ())]


class _Nothing(nn.Module):
    """Of which nothing is looked at but its arguments."""


def _assigned(names: list[str]) -> list[str]:
    return [f"it changes {listed(names)}"] if names else []


def listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(f"`{n}`" for n in names[:MOST_NAMED]) + more


@contextlib.contextmanager
def random_numbers() -> Iterator[list[str]]:
    """Says at the end whose random numbers besides torch's were drawn in here, and puts the generators back."""
    drawn: list[str] = []
    numpy = sys.modules.get("numpy")
    python, arrays = random.getstate(), numpy.random.get_state(legacy=False) if numpy else None
    try:
        yield drawn
    finally:
        if random.getstate() != python:
            drawn.append("it draws random numbers of Python's `random`")
            random.setstate(python)
        if numpy and repr(numpy.random.get_state(legacy=False)) != repr(arrays):
            drawn.append("it draws random numbers of NumPy")
            numpy.random.set_state(arrays)


@contextlib.contextmanager
def silent() -> Iterator[io.StringIO]:
    """What is printed in here, which nobody sees: the caller did not call the module."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield said


def _cuda_devices() -> list[int]:
    return [torch.cuda.current_device()] if torch.cuda.is_available() else []
