#!/usr/bin/env bash
# bench/run.sh SUITE [CASE] [PRECISION]: measures a suite (gemm, blocks), or a part of it, on the GPU at hand and replaces
# the rows that it measured in bench/results/SUITE.json. Stopped, it goes on where it was: tuned kernels are in the
# registry. Needs no network: a built binary ($TESSERA_BINARY or build/bin/tessera) and a Python with torch
# ($TESSERA_PYTHON or python3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${TESSERA_PYTHON:-python3}
[ -x .venv/bin/python ] && [ -z "${TESSERA_PYTHON:-}" ] && python=.venv/bin/python
PYTHONPATH=python${PYTHONPATH:+:$PYTHONPATH} exec "$python" bench/run.py "$@"
