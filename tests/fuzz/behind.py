"""The road behind torch.compile, without a compiler: what Dynamo captures, taken as the backend takes it, its plan run op by op. Eager is
Dynamo's graphs run as they are, so that what Dynamo itself does otherwise is not ours."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import torch
from campaign import Campaign
from program import Program
from road import canonical, plan_of
from tessera import backend
from tessera.common.errors import Error
from tessera.running import autocast
from tessera.tracing.captured import FlatCall
from torch._subclasses.fake_tensor import unset_fake_temporarily
from trial import Failure, alone


def graphs_as_they_are(module: torch.nn.Module):
    return torch.compile(module, backend="eager")


class Behind:
    drops_errors = True
    taken: ClassVar[Counter] = Counter()  # graphs by what became of them

    def __init__(self, module: torch.nn.Module, args: list):
        self.composed = torch.compile(module, backend=self._take)

    def _take(self, gm: torch.fx.GraphModule, inputs: list):
        if reason := backend._unfit(gm, inputs):
            Behind.taken[reason] += 1
            return gm.forward
        wanted = autocast.states()
        try:
            part = backend._held(gm, inputs, {}, {})
            with unset_fake_temporarily(), autocast.entered(()):
                call = FlatCall(part.held.compose(plan_of(canonical(part.held.graph)), "eager"), part.held)
        except Error as e:
            Behind.taken[e.diagnostic["code"]] += 1
            return gm.forward
        Behind.taken["plan"] += 1
        return backend._with_autocast_off(call) if wanted else call

    def exact(self, first: int, count: int, targets: str) -> str:
        return "product"


def behind(p: Program) -> Failure | None:
    torch._dynamo.reset()
    failure = alone(p, Behind, "behind", graphs_as_they_are)
    # Results lie as Dynamo's fake tensors say, as Inductor's do: the graphs behind were made for that.
    laid = failure is not None and all(d.symptom == "strides" for d in failure.differences)
    return None if laid else failure


class BehindCampaign(Campaign):
    size = 1
    trial = staticmethod(behind)

    def batch(self, programs: list[tuple[int, Program]]) -> None:
        for seed, p in programs:
            self.tally.take(p)
            self._alone(seed, p)
