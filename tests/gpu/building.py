"""Builds a generated source as the product does: the commands come from the engine, with places for this machine's paths.

TESSERA_NVCC names another nvcc, TESSERA_CXX another C++ compiler, TESSERA_CUTLASS_DIR where CUTLASS' tree is.
"""

import os
import pathlib
import subprocess
import sys

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
