#!/usr/bin/env bash
# bench/run.sh SUITE [CASE,...] [PRECISION,...] [options]: measures a suite (gemm, attention, blocks, breadth, kinds, anytime), or a part of
# it, on the GPU at hand and replaces the rows that it measured in bench/results/SUITE.json. Stopped, the same command goes
# on with what has no rows of this commit. mutations needs no GPU and no torch, but `ninja -C build mutations`. Needs no network: a built binary ($TESSERA_BINARY or build/bin/tessera) and a
# Python with torch ($TESSERA_PYTHON or python3); breadth also wants KernelBench's files (--kernelbench DIR) and the
# libraries whose layers it takes. --help lists the options; two GPUs side by side:
#   CUDA_VISIBLE_DEVICES=0 bench/run.sh breadth --shard 1/2 & CUDA_VISIBLE_DEVICES=1 bench/run.sh breadth --shard 2/2
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${TESSERA_PYTHON:-python3}
[ -x "$root/.venv/bin/python" ] && [ -z "${TESSERA_PYTHON:-}" ] && python=$root/.venv/bin/python
PYTHONPATH=$root/python${PYTHONPATH:+:$PYTHONPATH} exec "$python" "$root/bench/run.py" "$@"
