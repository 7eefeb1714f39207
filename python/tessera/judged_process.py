"""The process of a module that is judged (`python -m tessera.judged_process`): it imports a file that nobody has read, in a
sandbox, and calls its class on inputs that others draw. It knows no reference, compares nothing, and its clock is not believed
(docs/judge.md)."""

from __future__ import annotations

import os
import threading

import torch

from tessera.common import protocol
from tessera.common.errors import fail
from tessera.common.precision import CLASSES, cast, set_flags
from tessera.judging.rounds import Refused, Rounds
from tessera.judging.tampering import Watch
from tessera.tracing.loading import ProblemFile


class Judged:
    def __init__(self) -> None:
        self.watch = Watch()
        self.file: ProblemFile | None = None
        self.rounds: Rounds | None = None

    @property
    def handlers(self) -> dict:
        names = ("open", "build", "load", "call", "again", "inputs", "run", "deliver", "profile", "replaced")
        return {name: self._answered(getattr(self, name)) for name in names}

    def _answered(self, method):
        def handler(params: dict) -> dict:
            try:
                return method(params)
            except Refused as refused:
                return {"refused": refused.args[0]}

        return handler

    def open(self, params: dict) -> dict:
        os.environ.setdefault("TORCH_EXTENSIONS_DIR", os.path.abspath("torch_extensions"))
        set_flags(params["precision"])
        self.file = ProblemFile(params["path"], params["class"])
        return {"replaced": self.watch.replaced()}

    def build(self, params: dict) -> dict:
        """The module as KernelBench makes it: seeded before the arguments are made, and again before the class is."""
        if self.file is None:
            raise fail("TS0706", "peer.nothing_traced", "no file is open: `open` comes first")
        torch.manual_seed(params["seed"])
        init = params["init"]
        arguments = (tuple(init["args"]), init["kwargs"]) if init is not None else self.file.init_inputs()
        torch.manual_seed(params["seed"])
        with torch.no_grad():
            module = self.file.build(arguments)
        if params["precision"] in CLASSES:
            cast(module, (), {}, params["precision"])
        device = torch.device(params["device"])
        module.to(device)
        if not params["training"]:
            module.eval()
        self.rounds = Rounds(module, device, params["form"], params["outputs"], params["shelf"])
        return {}

    def load(self, params: dict) -> dict:
        self._rounds().load(params["file"], params["sets"])
        return {}

    def call(self, params: dict) -> dict:
        return {"places": self._rounds().call(params["which"])}

    def again(self, params: dict) -> dict:
        return {"places": self._rounds().again()}

    def inputs(self, params: dict) -> dict:
        return {"places": self._rounds().inputs(params["which"], params["file"])}

    def run(self, params: dict) -> dict:
        return self._rounds().run(params["which"])

    def deliver(self, params: dict) -> dict:
        return {"places": self._rounds().deliver(params["slot"])}

    def replaced(self, params: dict) -> dict:
        return {"replaced": self.watch.replaced(), "threads": threading.active_count()}

    def profile(self, params: dict) -> dict:
        """What one call ran, of all threads: PyTorch's ops, and on CUDA the kernels."""
        from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile

        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
        config = _ExperimentalConfig(profile_all_threads=True)
        with profile(activities=activities, experimental_config=config) as seen:
            self._rounds().call(params["which"])
        ops: dict[str, int] = {}
        kernels: dict[str, int] = {}
        for event in seen.events():
            on_device = event.device_type != torch.autograd.DeviceType.CPU
            if on_device or event.name.startswith("aten::"):
                counts = kernels if on_device else ops
                counts[event.name] = counts.get(event.name, 0) + 1
        return {"ops": ops, "kernels": kernels}

    def _rounds(self) -> Rounds:
        if self.rounds is None:
            raise fail("TS0706", "peer.nothing_traced", "no module is held: `build` comes first")
        return self.rounds


def main() -> None:
    judged = Judged()
    protocol.over_stdio(judged.handlers).serve()


if __name__ == "__main__":
    main()
