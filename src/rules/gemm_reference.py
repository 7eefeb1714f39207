"""D = epilogue(A B^T, operands...), or columns of D in parts that each have an epilogue of their own."""

import torch
from bodies import Storage, evaluate


def run_part(part: dict, acc: torch.Tensor, s: Storage) -> torch.Tensor:
    """Columns of a product's result, by themselves or as halves of groups."""
    x = acc[:, part["first"] : part["first"] + part["columns"]]
    operands = [s.view(v) for v in part["operands"]]
    rows = operands[0].shape[: operands[0].ndim - (2 if part["period"] else 1)] if operands else x.shape[:1]
    if not part["period"]:
        return evaluate(part["dag"], [x.unflatten(0, rows), *operands])[0].reshape(x.shape)
    halves = x.unflatten(0, rows).unflatten(-1, (-1, part["period"])).chunk(2, -1)
    return torch.cat(evaluate(part["dag"], [*halves, *operands]), -1).reshape(x.shape)


def run(body: dict, s: Storage) -> None:
    acc = s.view(body["a"]) @ s.view(body["b"]).transpose(-1, -2)
    if "parts" in body:
        assert body["epilogue"] == "%0" and not body["operands"] and body["batch"] == 1
        s.write(body["outputs"][0], torch.cat([run_part(p, acc[0], s) for p in body["parts"]], -1)[None])
        return
    results = evaluate(body["epilogue"], [acc] + [s.view(v) for v in body["operands"]])
    for v, r in zip(body["outputs"], results, strict=True):
        s.write(v, r)
