"""Wrong kernels with edits that an agent might propose: tests/kernels/wrong/, a folder a class. What each is, and how the
gates judge it with an edit.

`edits.json` says where the kernel is judged (`host`: by `tessera try`; `checker`: by `tessera check`), for which model and
rule, and has the edits. An edit replaces texts that each stand once in the kernel. Which edit is right stands nowhere: the
gates say it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from core import ROOT, tessera

FOLDER = ROOT / "tests/kernels/wrong"
CLASSES = sorted(f.parent.name for f in FOLDER.glob("*/edits.json"))


@dataclass(frozen=True)
class Change:
    """Lines of the kernel that an edit replaces."""

    line: int  # of the first, from 1
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """What a patch says: no title, and nothing of the kernel but the lines that it replaces."""

    changes: tuple[Change, ...]


@dataclass
class Wrong:
    name: str
    kernel: Path
    judged: str  # "host", "checker"
    model: str
    rule: str
    precision: str
    titles: list[str]
    edits: list[Edit]
    texts: list[str] = field(default_factory=list)  # the kernel with each of the edits

    @property
    def text(self) -> str:
        return self.kernel.read_text()


def load(name: str) -> Wrong:
    folder = FOLDER / name
    data = json.loads((folder / "edits.json").read_text())
    kernel = folder / ("kernel.cpp" if data["judged"] == "host" else "kernel.py")
    made = Wrong(
        name,
        kernel,
        data["judged"],
        data.get("model", ""),
        data.get("rule", ""),
        data.get("precision", "fp32"),
        [e["title"] for e in data["edits"]],
        [],
    )
    for edit in data["edits"]:
        made.edits.append(Edit(tuple(_change(made, c) for c in edit["changes"])))
        made.texts.append(_edited(made.text, edit["changes"]))
    return made


def _change(wrong: Wrong, change: dict) -> Change:
    """The replacement as whole lines, without those at its ends that stay."""
    text, find = wrong.text, change["find"]
    assert text.count(find) == 1, (wrong.name, find, text.count(find))
    at = text.index(find)
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at + len(find) - (1 if find.endswith("\n") else 0))
    old = text[begin:end].split("\n")
    new = (text[begin:at] + change["with"] + text[at + len(find) : end]).rstrip("\n").split("\n")
    line = text.count("\n", 0, begin) + 1
    while old and new and old[0] == new[0]:
        old, new, line = old[1:], new[1:], line + 1
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    assert old or new, (wrong.name, find)
    return Change(line, tuple(old), tuple(new))


def _edited(text: str, changes: list[dict]) -> str:
    for change in changes:
        text = text.replace(change["find"], change["with"])
    return text


def judge(wrong: Wrong, home: Path, text: str, name: str) -> dict:
    """The verdict on the kernel with this text."""
    if wrong.judged == "checker":
        return _checked(home, text, name)
    file = f"{name}.cpp"
    (home / file).write_text(text)
    options = ("--precision", wrong.precision)
    model = FOLDER / "models" / f"{wrong.model}.py"
    done = tessera(
        home, "try", model, pattern_of(wrong, home), "--source", file, "--peers", "eager", "--limit", "60", *options
    )
    verdict = json.loads(done.stdout)
    assert verdict.get("schema") == "tessera.verdict/1", (wrong.name, done.stdout, done.stderr)
    return verdict


_patterns: dict[tuple[str, str, str], str] = {}


def pattern_of(wrong: Wrong, home: Path) -> str:
    key = (wrong.model, wrong.rule, wrong.precision)
    if key not in _patterns:
        model = FOLDER / "models" / f"{wrong.model}.py"
        found = json.loads(tessera(home, "discover", model, "--precision", wrong.precision).stdout)["patterns"]
        _patterns[key] = next(p["id"] for p in found if p["rule"] == wrong.rule)
    return _patterns[key]


def _checked(home: Path, text: str, name: str) -> dict:
    """The checker's answer in the words of a verdict, as the gate `check` of `tessera try` writes it."""
    (home / f"{name}.py").write_text(text)
    done = tessera(home, "check", f"{name}.py")
    diagnostics = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    if done.returncode not in (0, 1, 2):
        diagnostics = diagnostics or [json.loads(done.stdout)]
        return {"passed": False, "failure": "bad_source", "diagnostics": diagnostics, "counterexample": None}
    report = json.loads(done.stdout)
    findings = [f for f in report.get("findings", []) if f["verdict"] != "proved"]
    told = [d for f in findings for d in f.get("diagnostics", [])] + diagnostics
    failure = {"proved": "none", "refuted": "refuted"}.get(report["verdict"], "undecided")
    return {"passed": failure == "none", "failure": failure, "diagnostics": told, "counterexample": findings}


def sweep(wrong: Wrong, home: Path, default: int) -> list[str]:
    """How each edit of a kernel for `host` ends: the default's first, which has to pass, then the others' in their order."""
    order = [default, *(i for i in range(len(wrong.texts)) if i != default)]
    text = f"// tunable: EDIT = {', '.join(map(str, order))}\n"
    for i in order:
        text += f"#{'if' if i == default else 'elif'} EDIT == {i}\n{wrong.texts[i]}"
    verdict = judge(wrong, home, text + "#endif\n", f"{wrong.name}_all")
    return [v["outcome"] for v in verdict["variants"]]
