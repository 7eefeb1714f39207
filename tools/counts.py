#!/usr/bin/env python3
"""How large the repository is, side by side for some revisions: counts.py [REVISION ...] (default: HEAD).

Lines are those that are not empty. `counted` is src, include, python, kernels and tests together, so that what only moves is no
gain. Edges are pairs of folders of src/ of which one includes the other; mutual pairs include each other.
"""

import argparse
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check_layers import includes, used_of

TEXT = {".cpp", ".h", ".hpp", ".cu", ".cuh", ".py", ".md", ".txt", ".toml", ".sh", ".cmake"}
COUNTED = ("src", "include", "python", "kernels", "tests")
TOPS = (*COUNTED, "bench", "tools", "examples", "docs")


def lines_of(path: Path) -> int:
    return sum(1 for line in path.read_text(errors="replace").splitlines() if line.strip())


def is_test(path: Path) -> bool:
    return path.stem.endswith("_test") or path.stem.startswith("test_") or "tests" in path.parts


def counts_of(root: Path) -> dict[str, str]:
    files = {p.relative_to(root): lines_of(p) for p in sorted(root.rglob("*")) if p.is_file() and p.suffix in TEXT}
    by_top = Counter()
    for path, n in files.items():
        by_top[path.parts[0]] += n
    rows = {f"lines, {top}/": f"{by_top[top]:,}" for top in TOPS}
    rows["lines, counted"] = f"{sum(by_top[top] for top in COUNTED):,}"
    product = sum(n for p, n in files.items() if p.parts[0] == "src" and not is_test(p))
    rows["lines, src/ without tests"] = f"{product:,}"
    folders = Counter(str(p.parent) for p in files if p.parts[0] in ("src", "python", "tests"))
    for rank, (folder, n) in enumerate(folders.most_common(3), 1):
        rows[f"folder {rank} by files"] = f"{folder}: {n}"
    used = used_of(includes(root))
    edges = {(a, b) for a, others in used.items() for b in others if a != b}
    rows["edges of src/"] = str(len(edges))
    rows["mutual pairs"] = str(sum((b, a) in edges for a, b in edges) // 2)
    rows["folders of realizers"] = str(sum(p.is_dir() for p in (root / "src/realize").iterdir()))
    text = {p: (root / p).read_text(errors="replace") for p in files if p.parts[0] == "src" and not is_test(p)}
    configs = {m for t in text.values() for m in re.findall(r"^struct (\w*Config)\b[^;]*$", t, re.MULTILINE)}
    rows["types of configurations"] = f"{len(configs)}: {', '.join(sorted(configs))}"
    return rows


def counted_at(revision: str) -> dict[str, str]:
    packed = subprocess.run(["git", "archive", revision], capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
        return counts_of(Path(folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revisions", nargs="*", default=["HEAD"])
    revisions = parser.parse_args().revisions
    columns = [counted_at(r) for r in revisions]
    for name in columns[0]:
        print(f"{name:28}", *(f"{c[name]:24}" for c in columns), sep="  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
