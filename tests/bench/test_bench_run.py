"""bench/run.py: which units it measures, what it keeps, how it ends."""

import json
import os
import time
from types import SimpleNamespace

import places  # noqa: F401  isort: skip
import homes
import pytest
import rows
import run
import suites

CASES = ["a", "b", "c", "d", "e"]


def make_suite(home="empty"):
    return SimpleNamespace(
        CASES=CASES,
        HOME=home,
        precisions=lambda case: ["fp32"],
        products=lambda: ["a", "d"],
        unit=lambda r: (r["case"], r["precision"], r["search_seconds"]),
        asked_seconds=lambda options: options.seconds or 30.0,
        line=lambda r: f"{r['case']} {r.get('failed', 'right')}",
        summary=lambda rows: [f"{len(rows)} rows"],
    )


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """run.py over a suite of five cases whose processes are stood in for. `did`: what was started, `take`: seconds."""
    b = SimpleNamespace(did=[], seconds={}, failing=set(), homes=[], results=tmp_path / "results", commit="c1")
    b.suite, b.now = make_suite(), 0.0

    def worker(request, environment, log, limit):
        b.did.append(request["case"])
        b.homes.append(environment.get("TESSERA_HOME"))
        assert environment == {} or b.suite.HOME == "shared" or os.path.isdir(os.path.dirname(b.homes[-1]))
        took = b.seconds.get(request["case"], 1.0)
        b.now += min(took, limit if limit is not None else took)
        if limit is not None and took > limit:
            raise run.OutOfTime
        row = {"case": request["case"], "precision": "fp32", "search_seconds": request["search_seconds"]}
        if request["case"] in b.failing:
            return [rows.failure(request, "a reason")]
        return [row | {"commit": rows.commit(), "ratio": b.now}]

    monkeypatch.setattr(run, "run_worker", worker)
    monkeypatch.setattr(run.time, "monotonic", lambda: b.now)
    monkeypatch.setattr(rows, "commit", lambda: b.commit)
    monkeypatch.setattr(suites, "load", lambda name: b.suite)

    def main(*arguments):
        b.did.clear()
        return run.main(["breadth", "--results", str(b.results), *arguments])

    b.main = main
    b.rows = lambda: json.loads((b.results / "breadth.json").read_text())
    return b


def test_a_run_goes_on_with_what_has_no_rows_of_its_commit(bench, capsys):
    assert bench.main("a,c") == 0 and bench.did == ["a", "c"]
    assert bench.main() == 0 and bench.did == ["b", "d", "e"]
    assert "2 units have rows" in capsys.readouterr().out
    assert bench.main() == 0 and bench.did == []
    assert bench.main("--seconds", "90") == 0 and bench.did == CASES
    assert len(bench.rows()) == 10
    assert bench.main("b", "--again") == 0 and bench.did == ["b"]
    bench.commit = "c2"
    assert bench.main("--products") == 0 and bench.did == ["a", "d"]
    assert {(r["case"], r["commit"]) for r in bench.rows() if r["search_seconds"] == 30} == {
        ("a", "c2"), ("b", "c1"), ("c", "c1"), ("d", "c2"), ("e", "c1")
    }  # fmt: skip
    bench.commit = rows.UNKNOWN
    assert bench.main("a") == 0 and bench.main("a") == 0 and bench.did == ["a"]


def test_failures_are_kept_and_come_last(bench):
    bench.failing = {"a"}
    assert bench.main("a,b") == 1
    assert [r.get("failed") for r in bench.rows()] == ["a reason", None]
    assert bench.main() == 1 and bench.did == ["c", "d", "e", "a"]
    bench.failing = set()
    assert bench.main() == 0 and bench.did == ["a"] and not any("failed" in r for r in bench.rows())
    bench.failing = {"a"}
    assert bench.main("a", "--again") == 0, "a failure takes the place of right rows of its commit"
    assert not any("failed" in r for r in bench.rows())


def test_shards_share_the_work_and_the_file(bench):
    assert bench.main("--shard", "1/2") == 0 and bench.did == ["a", "c", "e"]
    assert bench.main("--shard", "2/2") == 0 and bench.did == ["b", "d"]
    assert [r["case"] for r in bench.rows()] == CASES
    # What has rows stays out of a shard, and moves nothing from one shard to another.
    bench.commit = "c2"
    bench.main("a")
    assert bench.main("--shard", "1/2") == 0 and bench.did == ["c", "e"]
    for bad in ("3/2", "0/2", "2"):
        with pytest.raises(SystemExit):
            bench.main("--shard", bad)


def test_stop_after_keeps_what_there_is(bench, capsys):
    assert bench.main("--stop-after", "2.5") == 0 and bench.did == ["a", "b"]  # a third would not end in time
    assert "3 units are left" in capsys.readouterr().out
    assert [r["case"] for r in bench.rows()] == ["a", "b"]
    bench.seconds = {"d": 100.0}
    assert bench.main("--stop-after", "10") == 0 and bench.did == ["c", "d"]
    assert [r["case"] for r in bench.rows()] == ["a", "b", "c"]
    assert "2 units are left" in capsys.readouterr().out


def test_homes(bench, tmp_path, capsys):
    bench.main("a,b")
    assert len(set(bench.homes)) == 2 and not any(os.path.exists(home) for home in bench.homes)
    bench.suite, bench.homes[:] = make_suite("shared"), []
    shared = tmp_path / "home"
    assert bench.main("--again", "--fresh-home", str(shared)) == 0
    assert set(bench.homes) == {str(shared / "tessera")}
    assert bench.main("a", "--again", "--fresh-home", str(shared)) == 0  # the same commit goes on
    bench.commit = "c2"
    assert bench.main("a", "--fresh-home", str(shared)) == 3
    assert "holds what commit c1 built" in capsys.readouterr().err
    assert bench.main("a", "--fresh-home", str(tmp_path)) == 3
    assert "is not empty" in capsys.readouterr().err


def test_a_wrong_case_is_refused(bench, capsys):
    with pytest.raises(SystemExit):
        bench.main("z")
    assert "no case z; it has a, b, c, d, e" in capsys.readouterr().err


def test_a_second_home_lies_beside_the_first(monkeypatch, tmp_path):
    for name, value in homes.environment_of(tmp_path).items():
        monkeypatch.setenv(name, value)
    with homes.second():
        inner = os.environ["TESSERA_HOME"]
        assert inner.startswith(str(tmp_path) + "/second-") and os.environ["TRITON_CACHE_DIR"].startswith(str(tmp_path))
    assert os.environ["TESSERA_HOME"] == str(tmp_path / "tessera") and os.path.isdir(os.path.dirname(inner))


# The processes themselves


@pytest.fixture
def process(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "bench", tmp_path)
    request = {"suite": "breadth", "case": "a", "precision": "fp32", "options": {}, "search_seconds": 30.0}

    def start(text: str, limit=None):
        (tmp_path / "worker.py").write_text(text)
        return run.run_worker(request, {"MARK": "m"}, tmp_path / "out" / "log.txt", limit)

    return start


def test_a_worker_answers_with_rows(process, tmp_path):
    found = process(
        "import json, os, sys\n"
        "print('said')\n"
        "r = json.loads(sys.argv[2])\n"
        "open(sys.argv[1], 'w').write(json.dumps([{'case': r['case'], 'mark': os.environ['MARK']}]))\n"
    )
    assert found == [{"case": "a", "mark": "m"}]
    assert (tmp_path / "out" / "log.txt").read_text() == "said\n"


def test_a_worker_that_dies_is_a_failed_row(process):
    (row,) = process("import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert row["failed"] == "its process ended by signal SIGKILL: last words" and row["search_seconds"] == 30.0
    (row,) = process("raise SystemExit(7)\n")
    assert row["failed"] == "its process ended by exit code 7"


def test_a_worker_over_time_is_ended_with_what_it_started(process, tmp_path):
    mark = tmp_path / "alive"
    child = f"import time; time.sleep(4); open({str(mark)!r}, 'w')"
    begin = time.monotonic()
    with pytest.raises(run.OutOfTime):
        process(
            f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(60)\n",
            limit=1.0,
        )
    assert time.monotonic() - begin < 3
    time.sleep(4)
    assert not mark.exists()


def test_a_case_that_fails_in_its_process_says_why(monkeypatch):
    import worker

    monkeypatch.delenv("KERNELBENCH", raising=False)
    options = run.options_of(run.parse(["breadth", "L1-14"]))
    request = {"suite": "breadth", "case": "L1-14", "precision": "fp32", "options": options, "search_seconds": 30.0}
    (row,) = worker.rows_of(request)
    assert row["failed"].startswith("Missing: give --kernelbench DIR") and row["case"] == "L1-14"
