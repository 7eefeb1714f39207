"""Two products that share their left side and meet in one expression."""

from bodies import Storage, evaluate


def run(body: dict, s: Storage) -> None:
    a = s.view(body["a"])
    acc = [a @ s.view(body[b]).T for b in ("b0", "b1")]
    results = evaluate(body["epilogue"], acc + [s.view(v) for v in body["operands"]])
    for v, r in zip(body["outputs"], results, strict=True):
        s.write(v, r)
