"""Builds a generated source as the product does: the commands come from the engine, with places for this machine's paths.

TESSERA_NVCC names another nvcc, TESSERA_CXX another C++ compiler, TESSERA_CUTLASS_DIR where CUTLASS' tree is.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def cutlass_tree():
    """The folder that holds include/cutlass."""
    for place in (os.environ.get("TESSERA_CUTLASS_DIR", ""), str(ROOT / ".pkg/cutlass")):
        for folder in (pathlib.Path(place), pathlib.Path(place) / "source", pathlib.Path(place).parent):
            if place and (folder / "include/cutlass/cutlass.h").exists():
                return folder
    for folder in (ROOT / ".venv/lib").glob("python3*/site-packages/cutlass_library/source"):
        return folder
    sys.exit("no CUTLASS headers: set TESSERA_CUTLASS_DIR")


def run_commands(commands, source, output):
    """Runs them one after the other: whether all went well, and what they said."""
    nvcc = os.environ.get("TESSERA_NVCC", "/usr/local/cuda/bin/nvcc")
    places = {
        "{nvcc}": nvcc,
        "{cxx}": os.environ.get("TESSERA_CXX", "g++"),
        "{cuda}": str(pathlib.Path(nvcc).resolve().parent.parent),
        "{own}": str(ROOT / "include"),
        "{source}": str(source),
        "{output}": str(output),
    }
    if any("{cutlass}" in word for command in commands for word in command):
        places["{cutlass}"] = str(cutlass_tree())

    def filled(word):
        for place, value in places.items():
            word = word.replace(place, value)
        return word

    said = ""
    for command in commands:
        done = subprocess.run([filled(w) for w in command], check=False, capture_output=True, text=True)
        said += done.stdout + done.stderr
        if done.returncode:
            return False, said
    return True, said


def compile_one(directory, candidate):
    source = directory / candidate["file"]
    output = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "tessera_gemm_kernels" / (source.stem + ".so")
    output.parent.mkdir(parents=True, exist_ok=True)
    start = time.time()
    said = output.with_suffix(".log")
    if output.exists() and said.exists() and said.stat().st_mtime > source.stat().st_mtime:
        log, failure = said.read_text(), ""
    else:
        right, log = run_commands(candidate["commands"], source, output)
        failure = "" if right else log[-1500:]
        said.write_text(log) if right else None
    spills = any("spill stores" in line and " 0 bytes spill stores" not in line for line in log.splitlines())
    notes = ("SPILLS " if spills else "") + ("SERIALIZED" if "C7510" in log else "")
    return candidate["file"], None if failure else output, time.time() - start, notes, failure


def build(directory, index):
    """Compiles every distinct source on all cores: the libraries by file, and what is to be said."""
    unique = {c["file"]: c for e in index for c in e["candidates"]}
    start, failures, built, slowest = time.time(), [], {}, 0.0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, path, seconds, notes, failure in pool.map(lambda c: compile_one(directory, c), unique.values()):
            slowest = max(slowest, seconds)
            if path:
                built[name] = path
            if notes or failure:
                failures.append(f"{unique[name]['label']} ({name}): {notes} {failure}")
    print(f"compiled {len(built)} of {len(unique)} in {time.time() - start:.0f} s, the slowest {slowest:.0f} s")
    return built, failures
