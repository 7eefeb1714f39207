"""The versions that a library kernel's time and result depend on, and the machine that they are on. `python -m
tessera.tracing.library_versions` prints both.

The registry keeps them beside each entry: under other versions its library kernels, and eager, are timed again.
"""

from __future__ import annotations

import ctypes
import json
import re
from functools import cache

import torch


@cache
def library_versions(device_type: str) -> dict[str, str]:
    """By name: torch; on CUDA also cuda (what torch was built for), cublas, cudnn and driver. What cannot be found out is
    "unknown", which is another version than any other."""
    if device_type != "cuda":
        return {"torch": torch.__version__}
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "unknown",
        "cublas": _cublas(),
        "cudnn": str(torch.backends.cudnn.version() or "unknown"),
        "driver": _driver(),
    }


def _cublas() -> str:
    """Of the library that this process has loaded: cublasGetProperty takes no handle."""
    with open("/proc/self/maps") as maps:
        found = re.search(r"\S*/libcublas\.so\S*", maps.read())
    if found is None:
        return "unknown"
    library = ctypes.CDLL(found.group())
    parts = []
    for part in range(3):  # MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL of library_types.h
        value = ctypes.c_int()
        if library.cublasGetProperty(part, ctypes.byref(value)) != 0:
            return "unknown"
        parts.append(value.value)
    return ".".join(map(str, parts))


def _driver(places: tuple[str, ...] = ("/sys/module/nvidia/version", "/proc/driver/nvidia/version")) -> str:
    for place in places:
        try:
            with open(place) as text:
                found = re.search(r"\b\d+\.\d+(\.\d+)?\b", text.read())
        except OSError:
            continue
        if found:
            return found.group()
    # Less exact: the newest CUDA version that the driver runs.
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return "unknown"
    return f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def machine(device: torch.device) -> dict:
    """What the engine chooses an architecture by, and what the registry's entries are of: `device_name`, `capability` on
    CUDA, `libraries`."""
    libraries = library_versions(device.type)
    if device.type == "cuda":
        return {
            "device_name": torch.cuda.get_device_name(device),
            "capability": list(torch.cuda.get_device_capability(device)),
            "libraries": libraries,
        }
    try:
        with open("/proc/cpuinfo") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "CPU")
    except OSError:
        model = "CPU"
    return {"device_name": f"{model}, {torch.get_num_threads()} threads", "libraries": libraries}


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(json.dumps(machine(device)))


if __name__ == "__main__":
    main()
