"""A call's integers from the shapes and strides of its tensors, and every refusal of those that do not fit."""

from __future__ import annotations

import pytest
import torch
from tessera.common.errors import Error
from tessera.running import kernel_ops
from tessera.running.interface import Interface


def integer(name, lower=1, below=1 << 31, multiple=1, residue=0):
    return {"name": name, "lower": lower, "below": below, "multiple": multiple, "residue": residue}


def tensor(name, extents, strides, access="input", dtype="bfloat16"):
    return {"name": name, "dtype": dtype, "access": access, "extents": extents, "strides": strides}


PRODUCT = {
    "ints": [
        integer("M", 8, 1 << 20, 8),
        integer("N", 8, 1 << 20, 8),
        integer("K", 8, 1 << 20, 8),
        integer("S", 8, multiple=8),
    ],
    "tensors": [
        tensor("A", ["M", "K"], ["S", 1]),
        tensor("B", ["N", "K"], ["K", 1]),
        tensor("C", ["M", "N"], ["N", 1], "output"),
    ],
}
GAPS = {
    "ints": [integer("L"), integer("M"), integer("N"), integer("ROW", 8, multiple=8), integer("BATCH", 8, multiple=8)],
    "tensors": [
        tensor("X", ["L", "M", "N"], ["M * N", "N", 1]),
        tensor("Y", ["L", "M", "N"], ["BATCH", "ROW", 1], "output"),
    ],
}
WIDER = {
    "ints": [integer("M"), integer("R", 1, "M + 1")],
    "tensors": [tensor("X", ["M"], [1]), tensor("Y", ["M", "R"], ["R", 1], "output")],
}


def solved(data, given=None, **tensors):
    """The integers, and what is made of the outputs that are missing."""
    interface = Interface("f", data)
    shapes = {name: (tuple(t.shape), t.stride()) for name, t in tensors.items()}
    ints = interface.solve(shapes, given or {})
    interface.check(shapes, ints)
    return ints, [interface.made(p, ints) for p in interface.outputs if p.name not in tensors]


def refused(*arguments, **named) -> dict:
    with pytest.raises(Error) as e:
        solved(*arguments, **named)
    d = e.value.diagnostic
    assert d["expected"] and d["found"] and d["helps"]
    return d


def test_extents_and_strides_give_the_integers():
    a, b = torch.empty(128, 72)[:, :64], torch.empty(256, 64)
    ints, made = solved(PRODUCT, A=a, B=b)
    assert ints == {"M": 128, "N": 256, "K": 64, "S": 72}
    assert made == [((128, 256), (256, 1))]
    assert solved(PRODUCT, A=a, B=b, C=torch.empty(128, 256))[1] == []


def test_strides_of_outputs_are_as_dense_as_their_bounds_allow():
    ints, made = solved(GAPS, X=torch.empty(3, 5, 12))
    assert (ints["ROW"], ints["BATCH"]) == (16, 80)
    assert made == [((3, 5, 12), (80, 16, 1))]


def test_a_dimension_of_one_element_has_any_stride():
    y = torch.empty_strided((1, 5, 12), (3, 16, 1))
    ints, _ = solved(GAPS, X=torch.empty(1, 5, 12), Y=y)
    assert ints["ROW"] == 16 and ints["BATCH"] % 8 == 0
    assert solved(GAPS, X=torch.empty_strided((1, 5, 12), (7, 12, 1)))[0]["L"] == 1


@pytest.mark.parametrize(
    ("tensors", "code", "words"),
    [
        ({"A": (128, 64), "B": (256, 72)}, "TS0893", ["extent 1 of `B`", "K = 64, extent 1 of A", "72"]),
        ({"A": (100, 64), "B": (256, 64)}, "TS0894", ["`M`", "a multiple of 8", "M = 100, extent 0 of A"]),
        ({"A": (128, 4), "B": (256, 4)}, "TS0894", ["`K`", "at least 8", "K = 4"]),
        ({"A": (1 << 20, 8), "B": (8, 8)}, "TS0894", ["`M`", f"below {1 << 20}"]),
        ({"A": (128, 64), "B": (256, 64), "C": (256, 128)}, "TS0893", ["extent 0 of `C`", "M = 128, extent 0 of A"]),
    ],
)
def test_shapes_that_do_not_fit_are_refused(tensors, code, words):
    d = refused(
        PRODUCT, **{name: torch.empty(shape, dtype=torch.int8, device="meta") for name, shape in tensors.items()}
    )
    said = " ".join((d["message"], d["expected"], d["found"]))
    assert d["code"] == code
    assert all(word in said for word in words), said


def test_strides_that_do_not_fit_are_refused():
    a, b = torch.empty(128, 64), torch.empty(64, 256)
    d = refused(PRODUCT, A=a, B=b.T)
    assert d["code"] == "TS0893" and "stride 0 of `B`" in d["message"] and "contiguous" in d["helps"][0]
    assert "stride 1 of `A`" in refused(PRODUCT, A=torch.empty(64, 128).T, B=b.T.contiguous())["message"]
    assert refused(PRODUCT, A=torch.empty(1, 64).expand(128, 64), B=torch.empty(256, 64))["code"] == "TS0894"  # S = 0


def test_integers_that_follow_from_nothing_are_given():
    assert Interface("f", WIDER).free(Interface("f", WIDER).inputs) == ["R"]
    assert Interface("f", GAPS).free(Interface("f", GAPS).inputs) == []
    d = refused(WIDER, X=torch.empty(8))
    assert d["code"] == "TS0896" and "`R`" in d["message"]
    assert solved(WIDER, {"R": 3}, X=torch.empty(8))[1] == [((8, 3), (3, 1))]
    assert refused(WIDER, {"R": 9}, X=torch.empty(8))["expected"] == "at least 1, below 9"


@pytest.fixture
def product():
    """Operators of a kernel that is never launched."""
    return kernel_ops.operators(
        {"kernel": "product", "library": "/nowhere.so", "hash": "0", "arch": "sm_90a", "interface": PRODUCT}
    )


def of_call(operator, *arguments) -> dict:
    with pytest.raises(Error) as e:
        operator(*arguments)
    return e.value.diagnostic


def test_operators_refuse_ranks_types_devices_and_gradients(product):
    a, b = torch.empty(128, 64, dtype=torch.bfloat16), torch.empty(256, 64, dtype=torch.bfloat16)
    for tensors, code, found in [
        ((a[0], b), "TS0892", "1: [64]"),
        ((a.float(), b), "TS0892", "torch.float32"),
        ((a, b), "TS0892", "the device cpu"),
        ((a.clone().requires_grad_(), b), "TS0897", "a tensor with requires_grad"),
    ]:
        d = of_call(product.make, *tensors, [])
        assert (d["code"], d["found"]) == (code, found)
    assert of_call(product.write, a, b, a, [])["code"] == "TS0892"
    with torch.no_grad():
        assert of_call(product.make, a.clone().requires_grad_(), b, [])["code"] == "TS0892"


def test_results_without_elements_have_shape_strides_and_type(product):
    a, b = (torch.empty(n, 64, dtype=torch.bfloat16, device="meta") for n in (128, 256))
    c = product.make(a, b, [])
    assert (c.shape, c.stride(), c.dtype, c.device.type) == ((128, 256), (256, 1), torch.bfloat16, "meta")


def test_outputs_that_share_memory_are_refused(product):
    a, p = torch.empty(64, 64), product.interface.outputs[0]
    for output, others in [(a, [a]), (a[32:], [a]), (a[0].expand(64, 64), []), (a.as_strided((32, 64), (8, 1)), [])]:
        with pytest.raises(Error, match="TS0895"):
            kernel_ops._refuse_overlap(
                p, output, [(q, t) for q, t in zip(product.interface.inputs, others, strict=False)]
            )
    kernel_ops._refuse_overlap(p, a[:32].T, [(product.interface.inputs[0], a[32:])])
