"""One normalization along the last dim, with expressions before and after it."""

from bodies import Storage, evaluate


def run(body: dict, s: Storage) -> None:
    operands = [s.view(v) for v in body["operands"]]
    x = evaluate(body["pre"], operands)[0].expand(*body["rows"], body["columns"])
    if body["kind"] == "layer_norm":
        y = (x - x.mean(-1, True)) / (x.var(-1, unbiased=False, keepdim=True) + body["eps"]).sqrt()
    elif body["kind"] == "rms_norm":
        y = x / (x.square().mean(-1, True) + body["eps"]).sqrt()
    else:
        y = x.softmax(-1) if body["kind"] == "softmax" else x.log_softmax(-1)
    for v, r in zip(body["outputs"], evaluate(body["post"], [y, x, *operands]), strict=True):
        s.write(v, r)
