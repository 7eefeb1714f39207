"""Expressions over groups of elements, their reductions, and what follows on the reduced values."""

from bodies import Storage, evaluate


def run(body: dict, s: Storage) -> None:
    for group in body["groups"]:
        results = evaluate(group["dag"], [s.view(v) for v in group["operands"]])
        for v, r in zip(group["outputs"], results, strict=True):
            if body["reduction"]:
                dims = tuple(range(-body["reduced_dims"], 0))
                r = r.expand(group["shape"])
                if body["reduction"] == "prod":
                    r = r.flatten(-body["reduced_dims"]).prod(-1)
                else:
                    r = getattr(r, body["reduction"])(dims)
                if "finish" in body:
                    r = evaluate(body["finish"], [r])[0]
            s.write(v, r)
