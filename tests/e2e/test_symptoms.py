"""Each kernel brings one symptom about, which the verdict must name: wrong results on `host`, and what nvcc says for sm_90a."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from test_try import BEGIN, EPILOGUE, MODEL, judged, tessera

pytestmark = pytest.mark.skipif(not os.environ.get("TESSERA_TEST_ALL"), reason="under TESSERA_TEST_ALL=1")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("symptoms")
    (folder / "model.py").write_text(MODEL)
    return folder


def skeleton(home: Path, *options: str) -> str:
    return json.loads(tessera(home, "try", "model.py", "p01", "--skeleton", *options).stdout)["text"]


def stored(value: str) -> tuple[str, str]:
    return EPILOGUE, EPILOGUE.replace("e3", value)


# What is replaced in the skeleton of gelu(x W^T + b), the symptom, and how the wrong elements lie.
WRONG = {
    "columns": (*stored("i2 == 5 || i2 == 6 ? e2 : e3"), "whole columns are wrong", "columns"),
    "block": (*stored("i1 / 16 == 1 && i2 / 8 == 2 ? e2 : e3"), "a block of the result is wrong", "a block"),
    "diagonal": (*stored("i1 == i2 ? e2 : e3"), "wrong elements lie along a diagonal", "a diagonal"),
    "element": (*stored("i1 == 7 && i2 == 9 ? e2 : e3"), "a single element is wrong", "one element"),
    "scattered": (
        *stored("(i1 * 40 + i2) * 2654435761u % 997 < 300 ? e2 : e3"),
        "wrong elements lie without an order",
        "scattered",
    ),
    "offset": (*stored("e3 + 1"), "the result differs by one constant", None),
    "nearly": (*stored("1.001f * e3"), "a constant is wrong", "everywhere"),
    "epsilon": (*stored("e3 * (1 - 1e-5f * float(i1 + 30))"), "each row has a factor near 1", None),
    "constant": (*stored("0.25f"), "every element of the result is the same", None),
    "too_few": (
        "Index k = 0; k < 48; ++k",
        "Index k = 47; k < 48; ++k",
        "elements have no part in the result that must have one",
        None,
    ),
    "template": (
        BEGIN,
        'static_assert(sizeof(Index) == 4, "the index");',
        "a template was given what it does not take",
        None,
    ),
}


def test_a_source_for_other_tensors_is_said_to_be_one(home):
    text = skeleton(home)
    assert text.count('"t3"]') == 1
    text = text.replace('"t3"]', '"t3","t4","t5"]').replace(*stored("2 * e3"))
    verdict = judged(home, "other.cpp", text)
    assert verdict["failure"] == "not_the_pattern", verdict
    assert "the source is for 6 tensors" in verdict["cause"] and "pattern p01 has 4: %" in verdict["cause"], verdict
    assert verdict["advice"][0]["symptom"] == "the kernel takes other tensors than the pattern has"
    assert verdict["gates"][0]["note"] == "cxx", "nothing of choices where there are none"


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_shows_it(home, name):
    old, new, symptom, lies = WRONG[name]
    text = skeleton(home)
    at = text.rindex(old)
    verdict = judged(home, f"{name}.cpp", text[:at] + new + text[at + len(old) :], "--limit", "8")
    assert symptom in [a["symptom"] for a in verdict["advice"]], verdict
    assert lies is None or verdict["wrong"]["lies"] == lies


COMPILED = {
    "shared": (
        "__shared__ volatile float big[100000]; big[threadIdx.x] = 1;",
        "a block asks for too much shared memory",
    ),
    "target": ('asm volatile("tcgen05.fence::before_thread_sync;");', "the architecture has no such instruction"),
}


@pytest.mark.parametrize("name", COMPILED)
def test_what_the_compiler_for_a_gpu_says_is_read(home, name):
    new, symptom = COMPILED[name]
    options = ("--precision", "bf16", "--arch", "sm_90a")
    text = skeleton(home, *options)
    head = text.rindex("__global__ void")
    at = text.index("{", head) + 1
    verdict = judged(home, f"{name}.cu", text[:at] + new + text[at:], *options)
    assert verdict["failure"] == "does_not_compile"
    assert symptom in [a["symptom"] for a in verdict["advice"]], verdict
