"""The judge (`python -m tessera.judge_process`): holds the references, draws inputs, compares results, and runs the peers. What it
knows of a judged module are bytes in a file; nothing of a file that was given is imported here (docs/judge.md)."""

from __future__ import annotations

import secrets

import torch

from tessera.common import protocol
from tessera.common.errors import fail
from tessera.common.precision import set_flags
from tessera.judging import exchange
from tessera.judging.problem import Dataset
from tessera.judging.rounds import Rounds
from tessera.judging.whole import TRIALS, Whole
from tessera.judging.work import work_of

# Of all that the calls of one round take and give; few of many small calls are enough.
_ROUND_BYTES = {"cpu": 128 << 20, "cuda": 1 << 30}
_MOST_CALLS = 256


class Judge:
    def __init__(self) -> None:
        self.whole: Whole | None = None
        self.folder = ""
        self.held: dict[int, tuple[str, int, int, dict]] = {}  # set: (kind, build, number, inputs)
        self.data: Dataset | None = None
        self.last: list[torch.Tensor] | None = None  # results of the last trial, and of the one before
        self.before: list[torch.Tensor] | None = None
        self.peers: dict[str, Rounds] = {}
        self.number = 0

    @property
    def handlers(self) -> dict:
        names = ("open", "trial", "check", "check_again", "check_inputs", "round", "check_round")
        names += ("peer", "peer_load", "peer_run", "work")
        return {name: getattr(self, name) for name in names}

    def open(self, params: dict) -> dict:
        """`reference`: the reply of the process that made it (reference_process)."""
        made, device = params["reference"], torch.device(params["device"])
        graph = made["graph"]
        set_flags(graph["precision"])
        states, given = [], []
        for build in made["builds"]:
            names = [*build["state"], *build["given"]]
            places = [*build["state"].values(), *build["given"].values()]
            found = exchange.read(build["file"], places)
            if found is None:
                raise fail("TS0542", "judge.no_reference", "the reference's state cannot be read")
            named = {n: exchange.laid_out(t, p, device) for n, p, t in zip(names, places, found, strict=True)}
            states.append({n: named[n] for n in build["state"]})
            given.append({n: named[n] for n in build["given"]})
        self.folder = params["folder"]
        self.whole = Whole(graph, params["device"], graph["precision"], states, given, secrets.randbits(40))
        outputs = [{"shape": v["shape"], "dtype": v["dtype"], "name": v["name"]} for v in self.whole.outputs]
        if not outputs:
            raise fail("TS0543", "judge.no_results", "the reference returns no tensor")
        size = sum(t.nbytes for t in given[0].values())
        size += sum(exchange.places_of([(v["shape"], getattr(torch, v["dtype"]))])[1] for v in outputs)
        return {
            "outputs": outputs,
            "trials": [{"kind": kind, "build": build} for kind, build in TRIALS],
            "bytes": size,
            "aliases": self.whole.aliases(),
            "calls": max(2, min(_MOST_CALLS, _ROUND_BYTES[device.type] // max(size, 1))),
        }

    def trial(self, params: dict) -> dict:
        """Inputs of one kind in a file, with what must come out kept here."""
        whole, kind, build = self._whole(), params["kind"], params["build"]
        self.number += 1
        drawn = whole.draw(kind, build, self.number)
        self.data = whole.dataset(kind, build, self.number, drawn)
        self.held = {0: (kind, build, self.number, drawn)}
        return self._written([drawn])

    def check(self, params: dict) -> dict:
        """Results of the last trial, read where the judged process says that they lie."""
        self.before, self.last = self.last, None
        results = exchange.read(params["shelf"], self._places(0))
        if results is None:
            return _breach("incomplete", "the results are not in the file that they are handed over by")
        self.last = results
        return self._compared(self.data, results)

    def check_again(self, params: dict) -> dict:
        """The results of the trial before, after another call was made."""
        now = exchange.read(params["shelf"], self._places(0))
        if now is None or self.before is None:
            return _breach("incomplete", "the results of an earlier call are gone")
        for before, t in zip(self.before, now, strict=True):
            if not torch.equal(before.view(-1).view(torch.uint8), t.view(-1).view(torch.uint8)):
                reason = "the result of a call changed with the next call or its inputs: it is memory that is in use"
                return _breach("aliased_output", reason)
        return _right()

    def check_inputs(self, params: dict) -> dict:
        """Whether inputs are what they were before the call."""
        drawn = self.held[0][3]
        places, _ = exchange.places_of([(list(t.shape), t.dtype) for t in drawn.values()])
        now = exchange.read(params["file"], places)
        if now is None:
            return _breach("incomplete", "the inputs cannot be read after the call")
        for name, t in zip(drawn, now, strict=True):
            given = drawn[name].cpu().contiguous()
            if not torch.equal(given.view(-1).view(torch.uint8), t.view(-1).view(torch.uint8)):
                return _breach("input_modified", f"the input {name} was modified")
        return _right()

    def round(self, params: dict) -> dict:
        """Inputs of as many calls as `calls`, no two alike and none seen before."""
        whole, build = self._whole(), params["build"]
        self.held = {}
        for i in range(params["calls"]):
            self.number += 1
            self.held[i] = ("normal", build, self.number, whole.draw("normal", build, self.number))
        return self._written([drawn for *_, drawn in self.held.values()])

    def check_round(self, params: dict) -> dict:
        """The results of one call of a timed round; the judged process learns which after the round."""
        slot = params["slot"]
        kind, build, number, drawn = self.held[slot]
        results = exchange.read(params["shelf"], self._places(slot if self._whole().device.type == "cpu" else 0))
        if results is None:
            return _breach("incomplete", "the results are not in the file that they are handed over by")
        reply = self._compared(self._whole().dataset(kind, build, number, drawn), results)
        if not reply["ok"]:
            reply["reason"] = "in a timed run: " + reply["reason"]
        return reply

    def peer(self, params: dict) -> dict:
        """Makes a peer ready, once; the sets of a round are loaded for it."""
        whole = self._whole()
        if held := self.peers.get(params["name"]):
            held.load(params["file"], params["sets"])
            return {}
        try:
            made = whole.peer(params["name"], params["build"])
            if isinstance(made, str):
                return {"absent": made}
            module, names = made
            form = {"args": [{"tensor": n} for n in names], "kwargs": {}}
            rounds = Rounds(module, whole.device, form, whole.outputs, f"{self.folder}/peer-{params['name']}.bin")
            rounds.load(params["file"], params["sets"][:2])
            for _ in range(2):
                rounds.run([0, 1])  # compiled and warm
        except Exception as error:  # noqa: BLE001 - a peer's compiler may fail in many ways
            return {
                "absent": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300] if str(error) else ''}"
            }
        self.peers[params["name"]] = rounds
        return {}

    def peer_load(self, params: dict) -> dict:
        for rounds in self.peers.values():
            rounds.load(params["file"], params["sets"])
        return {}

    def peer_run(self, params: dict) -> dict:
        return self.peers[params["name"]].run(params["which"])

    def work(self, params: dict) -> dict:
        reference = [n["op"].split(".")[1] for n in self._whole().graph["nodes"]]
        return work_of(params["ops"], params["kernels"], params["source"], reference)

    def _whole(self) -> Whole:
        if self.whole is None:
            raise fail("TS0706", "peer.nothing_traced", "no reference is held: `open` comes first")
        return self.whole

    def _places(self, slot: int) -> list[dict]:
        kinds = [(list(v["shape"]), getattr(torch, v["dtype"])) for v in self._whole().outputs]
        _, size = exchange.places_of(kinds)
        return exchange.places_of(kinds, slot * size)[0]

    def _written(self, sets: list[dict[str, torch.Tensor]]) -> dict:
        path = f"{self.folder}/inputs/inputs.bin"  # the one folder of ours that the judged process reads
        places = iter(exchange.write(path, [t for drawn in sets for t in drawn.values()]))
        return {"file": path, "sets": [{name: next(places) for name in drawn} for drawn in sets]}

    def _compared(self, data: Dataset, results: list[torch.Tensor]) -> dict:
        errors, breach = self._whole().compare(data, results)
        worst = max(errors, key=lambda e: e["rms"]) if errors else None
        reply = _right() | ({"errors": _figures(worst)} if worst else {})
        return reply if breach is None else {**reply, "ok": False, **breach}


def _figures(e: dict) -> dict:
    base = e["baseline"]
    return {
        "rms": e["rms"],
        "max": e["max"],
        "baseline_rms": base["rms"],
        "baseline_max": base["max"],
        "budget_rms": e["budget"]["rms"],
        "budget_max": e["budget"]["max"],
    }


def _right() -> dict:
    return {"ok": True, "kind": "", "reason": ""}


def _breach(kind: str, reason: str) -> dict:
    return {"ok": False, "kind": kind, "reason": reason}


def main() -> None:
    protocol.over_stdio(Judge().handlers).serve()


if __name__ == "__main__":
    main()
