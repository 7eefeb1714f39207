"""Stand-ins for a module, for what tessera makes of it, and for the time that passes."""

import torch


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, x):
        return self.linear(x).relu()


class Time:
    """Passes by 0.1 ms when it is asked for, and as a stand-in says."""

    now = 0.0

    @classmethod
    def read(cls) -> float:
        cls.now += 1e-4
        return cls.now


class Composed(torch.nn.Module):
    """Stands for a composed module: right unless `wrong`, slower by `seconds` a call."""

    def __init__(self, module, seconds=0.0, wrong=0.0, plan=None, checkpoints=None):
        super().__init__()
        self.inner, self.seconds, self.wrong = module, seconds, wrong
        self.plan, self.leftover = plan or {"steps": []}, "eager"
        self.report = {"kind": "mixed", "stage_seconds": {"evaluate": 7.0}, "toolchain": {"nvcc_version": "13"}}
        self.report["patterns"] = [{"rule": "gemm", "summary": "s", "active": False, "inactive_because": "slower"}]
        if checkpoints is not None:
            self.report["checkpoints"] = checkpoints

    def forward(self, x):
        Time.now += self.seconds
        return self.inner(x) + self.wrong

    def status(self):
        kinds = (("synthesized", True), ("library", True), ("synthesized", False))
        return {
            "patterns": [{"kind": kind, "active": active} for kind, active in kinds],
            "runner": "kernels",
            "leftover_by": "eager",
            "fallbacks": [{"kind": "grad", "count": 1}],
        }
