"""The evaluator process on host kernels: a right one passes, and each kind of fault is caught as what it is."""

from __future__ import annotations

import pytest
from evaluator_client import FAULTS, PATTERN, Client, Died, Hung, Refused, build_kernel, candidate


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def shared():
    client = Client()
    yield client
    client.close()


@pytest.fixture
def fresh():
    client = Client()
    yield client
    client.close()


def test_hello(shared):
    hello = shared.call("hello")
    assert hello["device"] in ("cpu", "cuda") and hello["torch"] and hello["cpu"]


def test_right_kernel_passes_with_its_errors(shared, folder):
    handle = shared.open()
    reply = shared.call(
        "verify", {"handle": handle, "candidate": candidate(build_kernel(folder, "right")), "level": "full"}
    )
    assert reply["ok"], reply
    assert 0 < reply["rms_error"] < 1e-6 and 0 < reply["baseline_rms_error"] < 1e-6
    assert reply["rms_error"] <= reply["budget"]["rms"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("wrong", "wrong_result"),
        ("out_of_bounds", "out_of_bounds"),
        ("before_bounds", "out_of_bounds"),
        ("beside_input", "out_of_bounds"),
        ("incomplete", "incomplete"),
        ("modifies_input", "input_modified"),
        ("swallows_nan", "non_finite"),
        ("refuses", "launch_failed"),
    ],
)
def test_fault_is_named(shared, folder, fault, kind):
    handle = shared.open()
    reply = shared.call(
        "verify", {"handle": handle, "candidate": candidate(build_kernel(folder, fault)), "level": "quick"}
    )
    assert not reply["ok"] and reply["kind"] == kind and reply["reason"], reply
    # The process and the problem go on: damage done to inputs does not reach the next candidate.
    again = shared.call("verify", {"handle": handle, "candidate": candidate(build_kernel(folder, "right"))})
    assert again["ok"], again


def test_crash_ends_the_process_by_its_signal(fresh, folder):
    handle = fresh.open()
    with pytest.raises(Died) as died:
        fresh.call("verify", {"handle": handle, "candidate": candidate(build_kernel(folder, "crashes"))})
    assert died.value.code == -11


def test_exit_of_a_kernel_ends_the_process(fresh, folder):
    handle = fresh.open()
    with pytest.raises(Died) as died:
        fresh.call("verify", {"handle": handle, "candidate": candidate(build_kernel(folder, "exits"))})
    assert died.value.code == 3


def test_hang_is_left_to_the_caller(fresh, folder):
    handle = fresh.open()
    fresh.call("verify", {"handle": handle, "candidate": candidate(build_kernel(folder, "right"))})
    with pytest.raises(Hung):
        fresh.call("verify", {"handle": handle, "candidate": candidate(build_kernel(folder, "hangs"))}, limit=2)


def test_measure_side_by_side_with_eager(shared, folder):
    handle = shared.open()
    reply = shared.call(
        "measure",
        {
            "handle": handle,
            "candidates": [
                candidate(build_kernel(folder, "right")),
                candidate(build_kernel(folder, "refuses")),
                {"label": "aten", "call": {"function": "aten"}},
            ],
            "anchor": True,
            "milliseconds": 10,
        },
    )
    right, refuses, aten = reply["times"]
    assert right["ok"] and right["ms"] > 0 and right["samples"] >= 5, right
    assert not refuses["ok"] and refuses["reason"] == "it said no"
    assert aten["ok"] and reply["eager_ms"] > 0
    assert reply["eager_samples"] >= 5


def test_a_graph_that_was_sent_is_known(fresh, folder):
    with pytest.raises(Refused):
        fresh.call("open", {"pattern": PATTERN, "device": "cpu", "precision": "fp32"})
    first = fresh.open()
    second = fresh.call("open", {"pattern": PATTERN, "device": "cpu", "precision": "fp32"})["handle"]
    right = candidate(build_kernel(folder, "right"))
    for handle in (second, first, second):
        assert fresh.call("verify", {"handle": handle, "candidate": right})["ok"]
    fresh.call("close", {"handle": first})
    assert fresh.call("verify", {"handle": second, "candidate": right})["ok"]


def test_a_pattern_before_any_graph_is_refused(fresh):
    with pytest.raises(Refused) as refused:
        fresh.open(graph={})
    assert refused.value.diagnostic["code"] == "TS0519"


def test_timed_runs_are_checked_again(shared, folder):
    handle = shared.open()
    reply = shared.call(
        "measure",
        {
            "handle": handle,
            "candidates": [candidate(build_kernel(folder, "lazy"))],
            "anchor": False,
            "milliseconds": 50,
            "seed": 1,
        },
    )
    row = reply["times"][0]
    assert not row["ok"] and row["kind"] == "wrong_result" and "timed run" in row["reason"], row


def test_library_call_passes_as_a_candidate(shared):
    handle = shared.open()
    reply = shared.call(
        "verify", {"handle": handle, "candidate": {"label": "aten", "call": {"function": "aten"}}, "level": "full"}
    )
    assert reply["ok"], reply


def test_wrong_use_is_a_diagnostic(shared, folder):
    handle = shared.open()
    few = candidate(build_kernel(folder, "right"))
    few["launch"] = {"ints": [1]}
    reply = shared.call("verify", {"handle": handle, "candidate": few})
    assert not reply["ok"] and reply["kind"] == "launch_failed" and "run-time integers" in reply["reason"]
    with pytest.raises(Refused) as refused:
        shared.call("verify", {"handle": 999, "candidate": few})
    assert refused.value.diagnostic["code"] == "TS0714"
    with pytest.raises(Refused) as unexpected:
        shared.call("open", {})
    assert unexpected.value.diagnostic["code"] == "TS0901" and "KeyError" in unexpected.value.diagnostic["message"]
    missing = shared.call("verify", {"handle": handle, "candidate": {"library": "/nowhere.so", "launch": {"ints": []}}})
    assert not missing["ok"] and "nowhere" in missing["reason"]


def test_every_fault_has_a_test():
    assert len(FAULTS) == 13
