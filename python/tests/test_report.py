"""The HTML report: every part is there, nothing is loaded from elsewhere, damaged input gets a message."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import sys

from tessera.report import main, render

EVIDENCE = {"ms": 0.4, "ci95": 0.01, "max_error": 1e-2, "rms_error": 1e-3, "baseline_rms_error": 2e-3}
WINNER = {
    "label": "cutlass_gemm 128x256x64 2x1 coop",
    "realizer": "cutlass_gemm",
    "kind": "synthesized",
    "config": {"tile": [128, 256, 64]},
    "evidence": EVIDENCE,
}
TRIALS = [
    {"label": "cutlass_gemm 128x256x64", "launch": 0, "outcome": "measured", "ms": 0.5 - i / 100, "ci95": 0.01}
    for i in range(10)
] + [
    {
        "label": "cutlass_gemm 256x256x64",
        "launch": 0,
        "outcome": "build_failed",
        "ms": 0.0,
        "reason": "too much shared memory <b>",
    }
]
REPORT = {
    "schema": "tessera.report/1",
    "name": "Mini<GPT>",
    "device": "H200",
    "arch": "sm_90a",
    "precision": "bf16",
    "effort": "default",
    "torch": "2.11.0",
    "toolchain": {"nvcc": "13.0"},
    "leftover_runner": "eager",
    "peaks": {"tflops": 989.0, "bandwidth_gbs": 4800.0, "achievable_bandwidth_gbs": 4100.0},
    "refinements": [
        {"pattern": "p01", "from": "slow alone", "to": "fast beside others", "ms": 1.2, "than": 1.3},
        {
            "pattern": "p02",
            "from": "a",
            "to": "b",
            "ms": 1.2,
            "than": 1.2,
            "sustained_ms": 1.41,
            "than_sustained": 1.43,
        },
    ],
    "rewrites": [{"what": "tanh-GELU written out", "result": "gelu", "nodes": ["mul", "tanh"]}],
    "rejections": [{"rule": "attention", "nodes": ["bmm"], "reason": "the softmax is over another dim"}],
    "leftover": [{"node": "cumsum", "op": "aten.cumsum.default", "reason": "no rule takes it"}],
    "patterns": [
        {
            "id": "p01",
            "rule": "gemm",
            "nodes": ["linear"],
            "summary": "65536x768x768",
            "active": True,
            "eager_ms": 0.9,
            "floor_ms": 0.3,
            "flops": 7.7e10,
            "min_bytes": 2e8,
            "winners": [WINNER],
            "tuning": {
                "trials": TRIALS,
                "pruned": [{"reason": "shared memory", "count": 7}],
                "unsupported": [{"realizer": "tile_gemm", "reason": "no wgmma"}],
                "stopped_because": "converged",
            },
        },
        {
            "id": "p02",
            "rule": "row_norm",
            "nodes": ["ln"],
            "active": False,
            "inactive_because": "slower than eager",
            "winners": [],
        },
    ],
    "verification": {
        "ok": True,
        "resizes": [
            {"size": "batch (dim 0: 8 → 4)", "ok": True, "kernels": 3, "of": 4, "rms_error": 1e-3, "reason": "cut"},
            {"size": "sequence (dim 1: 32 → 24)", "ok": None, "reason": "the module does not take <it>"},
        ],
        "rms_error": 1e-3,
        "baseline_rms_error": 1e-3,
        "max_error": 0.1,
        "baseline_max_error": 0.1,
    },
    "module": {
        "times": {"tessera": {"ms": 2.3, "ci95": 0.01}, "eager": {"ms": 6.28, "ci95": 0.02}},
        "absent": {"tensorrt": "torch_tensorrt is not installed"},
        "ablation": [
            {"name": "only gemm p01", "ms": 4.0, "speedup": 1.57},
            {"name": "all", "ms": 2.3, "speedup": 2.73},
        ],
    },
    "stage_seconds": {"evaluate": 200.0},
    "stopped": False,
}


def example() -> dict:
    return copy.deepcopy(REPORT)


def test_has_every_section():
    text = render(example())
    for key in (
        "backends",
        "ladder",
        "ablation",
        "patterns",
        "roofline",
        "tuning",
        "leftover",
        "rejections",
        "refinements",
        "rewrites",
        "errors",
        "toolchain",
    ):
        assert f'<section id="{key}">' in text, key
    for words in (
        "Mini&lt;GPT&gt;",
        "2.73×",
        "torch_tensorrt is not installed",
        "slower than eager",
        "no rule takes it",
        "too much shared memory &lt;b&gt;",
        "no wgmma",
        "stopped: converged",
    ):
        assert words in text, words


def test_where_no_kernel_is_placed_nothing_is_said_to_be_right():
    report = example() | {"runner": "inductor"}
    report["patterns"] = [p | {"active": False} for p in report["patterns"]]
    report["verification"] = {"ok": True, "form": "none: PyTorch runs the module"}
    text = render(report)
    assert "no kernel placed" in text and "Inductor runs the module" in text
    assert '<span class="good">right</span>' not in text and '<section id="errors">' not in text


def test_loads_nothing():
    text = render(example())
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="?http', text)
    assert text.count("plotly.js v") >= 1


def test_a_bare_report_renders():
    bare = {"schema": "tessera.report/1"}
    assert "0 of 0" in render(bare) and "run again to go on" not in render(bare)
    assert "run again to go on" in render(bare | {"stopped": True})


def test_command(tmp_path, capsys):
    source, out = tmp_path / "r.json", tmp_path / "r.html"
    source.write_text(json.dumps(example()))
    assert main([str(source), str(out)]) == 0 and out.stat().st_size > 10000
    source.write_text("{")
    assert main([str(source), str(out)]) == 3
    source.write_text('{"schema": "other/1"}')
    assert main([str(source), str(out)]) == 3
    said = capsys.readouterr().err
    assert "TS0708" in said and "tessera.report/1" in said
    assert main([]) == 3


def test_without_plotly_tables_stand_in_the_place_of_plots(monkeypatch, tmp_path, capsys):
    plots = render(example()).count("js-plotly-plot")
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "plotly" else real(name, *a))
    (tmp_path / "r.json").write_text(json.dumps(example()))
    assert main([str(tmp_path / "r.json"), str(tmp_path / "r.html")]) == 0
    said = capsys.readouterr().err
    assert "warning[TS0709]" in said and f"{sys.executable} -m pip install plotly" in said
    page = (tmp_path / "r.html").read_text()
    assert plots > 0 and "js-plotly-plot" not in page
    assert "pip install plotly" in page and page.count("figures</summary>") >= 3
    assert '<td class="w">6.28</td>' in page  # eager's time, which a bar shows
    assert "pip install" not in render_with_plotly(monkeypatch, real)


def render_with_plotly(monkeypatch, real) -> str:
    monkeypatch.setattr(importlib.util, "find_spec", real)
    return render(example())


def test_holds_the_words_that_it_uses_and_no_others():
    page = render(example())
    words = page[page.index('<section id="words">') :]
    assert "one attempt with a candidate" not in words  # `trial`, which only axes of plots say
    assert "the least time that a pattern can take by the roofline" in words
    assert "<code>gemm</code>" in words and "](" not in words and "|" not in words.split("</table>")[0]
    assert '<section id="words">' not in render({"schema": "tessera.report/1"})


def test_other_sizes_and_both_schemes():
    page = render(example())
    assert "3 of 4" in page and "not verified" in page and "does not take &lt;it&gt;" in page
    assert "prefers-color-scheme:dark" in page and "Plotly.relayout" in page
    wide = re.findall(r"width:\s*(\d+)px", page.split("</style>")[0])
    assert all(int(w) <= 1100 for w in wide)


def test_times_that_no_comparison_can_rest_on():
    report = example()
    assert "not reliable" not in render(report)
    report["module"]["times"]["eager"]["reliable"] = False
    assert "not reliable: eager: other work" in render(report)


def test_a_ratio_that_is_no_figure_is_not_shown_and_what_was_passed_over_is():
    report = example()
    module, pattern = report["module"], report["patterns"][0]
    module["times"] = {"tessera": {"ms": 1.0}, "eager": {"ms": 1.61}}
    pattern["eager_ms"], pattern["winners"][0]["evidence"]["ms"] = 3.14, 2.0
    assert "1.61×" in render(report) and "1.57×" in render(report)
    module["times"]["eager"]["comparable"] = pattern["comparable"] = False
    pattern["passed_over"] = [{"label": "by_hand <k>.cpp", "reason": "3 ms a call"}]
    text = render(report)
    assert "1.61×" not in text and "1.57×" not in text
    assert "not reliable" in text and "noisy" in text
    assert "stored before and passed over: by_hand &lt;k&gt;.cpp: 3 ms a call" in text
