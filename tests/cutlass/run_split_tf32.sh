#!/usr/bin/env bash
# Builds the split-tf32 self-test in parallel and runs it: run_split_tf32.sh [check|time|build]
#   TESSERA_CUTLASS_DIR  the CUTLASS tree (the folder that holds include/); default: the Python package nvidia-cutlass
#   BUILD_DIR            default: a fresh temporary folder
#   JOBS                 default: nproc
#   INSTANCES            ids of split_tf32_instances.inc to compile (build only), default: all
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-all}
cutlass=${TESSERA_CUTLASS_DIR:-}
if [ -z "$cutlass" ]; then
  cutlass=$(python3 -c 'import cutlass_library, os; print(os.path.join(os.path.dirname(cutlass_library.__file__), "source"))') || {
    echo "CUTLASS not found: set TESSERA_CUTLASS_DIR or install nvidia-cutlass" >&2
    exit 2
  }
fi
if [ ! -f "$cutlass/include/cutlass/cutlass.h" ]; then
  echo "no include/cutlass/cutlass.h under $cutlass" >&2
  exit 2
fi
build=${BUILD_DIR:-$(mktemp -d)}
mkdir -p "$build"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
flags="-std=c++17 -O3 -DNDEBUG -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -Xptxas -v
  -diag-suppress 20012 -I$here/../../include -I$cutlass/include"
# cuBLAS comes with the CUDA toolkit or, without one that is complete, with the Python package of torch.
cublas=""
if ! ls "$(dirname "$(readlink -f "$nvcc")")"/../lib*/libcublas.so "$(dirname "$(readlink -f "$nvcc")")"/../targets/*/lib/libcublas.so >/dev/null 2>&1; then
  found=$(python3 -c 'import glob, site, sys; print(next(iter(sorted(sum((glob.glob(p + "/nvidia/c*/lib/libcublas.so.*") for p in sys.path), []))), ""))')
  if [ -z "$found" ]; then
    echo "libcublas not found beside nvcc or in the Python packages" >&2
    exit 2
  fi
  cublas=$(dirname "$(dirname "$found")")
  flags="$flags -I$cublas/include"
fi
ids=${INSTANCES:-$(sed -nE 's/^INSTANCE\(([0-9]+),.*/\1/p' "$here/split_tf32_instances.inc")}

{
  if [ -z "${INSTANCES:-}" ]; then echo main; fi
  for id in $ids; do echo "$id"; done
} | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c '
  if [ {} = main ]; then source=split_tf32_selftest.cu; else source=split_tf32_instance.cu; fi
  "'"$nvcc"'" '"$(echo $flags)"' -DTESSERA_SPLIT_INSTANCE={} -c "'"$here"'/$source" \
    -o "'"$build"'/{}.o" >"'"$build"'/{}.log" 2>&1 || { cat "'"$build"'/{}.log" >&2; exit 255; }'

echo "instance: registers, spills, wgmma serialization warnings"
for id in $ids; do
  log=$build/$id.log
  echo "$id: $(grep -A3 "Function properties for _ZN7cutlass" "$log" | grep -oE "[0-9]+ bytes spill stores|Used [0-9]+ registers" |
    paste -sd, -), C75xx warnings: $(grep -cE "\(C75[0-9]+\)" "$log" || true)"
done
if [ "$what" = build ]; then exit 0; fi
link="-lcublas"
if [ -n "$cublas" ]; then link="$found -Xlinker -rpath=$cublas/lib"; fi
"$nvcc" -gencode=arch=compute_90a,code=sm_90a "$build"/*.o $link -o "$build/split_tf32_selftest"
exec "$build/split_tf32_selftest" "$what"
