"""The modes of torch.compile, one rule for both doors: Inductor's settings, and who may run what no kernel covers."""

from __future__ import annotations

import torch

from tessera.common.errors import fail

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_graphs, _trees = "triton.cudagraphs", "triton.cudagraph_trees"


def settings_of(mode: str | None) -> dict:
    """Inductor's settings in a mode; none is torch.compile's own default. Error: TS0013."""
    if mode is not None and mode not in MODES:
        raise fail("TS0013", "input.bad_option", f"mode=`{mode}`", expected=", ".join(MODES))
    return dict(torch._inductor.list_mode_options(mode)) if mode and mode != "default" else {}


def records(settings: dict) -> bool:
    """Whether Inductor records CUDA graphs, in trees: what they read in place is looked up on every call. Settings that are not
    among these are torch's global ones."""
    from torch._inductor import config

    return settings.get(_graphs, config.triton.cudagraphs) and settings.get(_trees, config.triton.cudagraph_trees)


def rest_runner(wanted: str, settings: dict, device: torch.device) -> str:
    """Who may run what no kernel covers: Inductor where its CUDA graphs are to hold kernels and the rest together, for ops that
    are called one by one are in none. Error: TS0013."""
    if not settings.get(_graphs) or device.type != "cuda":
        return wanted
    if wanted == "eager":
        raise fail(
            "TS0013",
            "input.bad_option",
            "leftover=`eager` in a mode with CUDA graphs, which Inductor records",
            expected="leftover=`auto` or `inductor`, or the mode `default` or `max-autotune-no-cudagraphs`",
        )
    return "inductor"
