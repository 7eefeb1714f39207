#!/usr/bin/env bash
# Format, lint, layers, sizes, codes in tests, docs, known configurations. clang-tidy reads only the files that differ from $TESSERA_LINT_BASE (default: twenty
# commits ago; files that were only moved are left out), $TESSERA_LINT_MOST of them at most (default: 10); with TESSERA_LINT_ALL=1 every file.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build}
venv=${TESSERA_VENV:-.venv}
failed=0
step() {
  local name=$1
  shift
  if "$@"; then echo "ok      $name"; else echo "FAILED  $name"; failed=1; fi
}

# Those that are not committed yet as well.
files() { git ls-files --cached --others --exclude-standard "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }
mapfile -t cxx < <(files '*.cpp' '*.h')
step "clang-format" clang-format-19 --dry-run -Werror "${cxx[@]}"
step "ruff" "$venv/bin/ruff" check -q python src tools bench tests examples
step "ruff format" "$venv/bin/ruff" format -q --check python src tools bench tests examples
step "layers" "$venv/bin/python" tools/check_layers.py
step "sizes" "$venv/bin/python" tools/check_sizes.py
step "codes in tests" "$venv/bin/python" tools/check_codes.py
step "docs in sync" "$venv/bin/python" tools/check_docs.py --binary "$build/bin/tessera"
step "known configurations in sync" "$venv/bin/python" tools/known_good.py

base=${TESSERA_LINT_BASE:-$(git rev-parse -q --verify HEAD~20 || git rev-list --max-parents=0 HEAD | tail -n 1)}
new() { git ls-files --others --exclude-standard; }
# Of tests/, what is no test itself, but for the folders whose files a test compiles.
sources() { grep -E '^(src|tests)/.*\.cpp$' | grep -vE '_test\.cpp$|^tests/(cutlass|emulate|kernels|recipes)/'; }
if [ "${TESSERA_LINT_ALL:-0}" = 1 ]; then
  mapfile -t lint < <(files | sources)
else
  mapfile -t lint < <({ git diff --name-only --diff-filter=dr "$base"; new; } | sources)
fi
what="${#lint[@]} files"
# A file takes about twenty seconds, so a wide change is linted in part: what was committed last, and what is not committed.
most=${TESSERA_LINT_MOST:-10}
if [ "${TESSERA_LINT_ALL:-0}" != 1 ] && [ ${#lint[@]} -gt "$most" ]; then
  what="the $most latest of ${#lint[@]} changed files; TESSERA_LINT_ALL=1 for every file"
  mapfile -t lint < <({ new; git diff --name-only --diff-filter=dr HEAD
                        git log --format= --name-only --diff-filter=dr "$base..HEAD"; } | sources | awk '!seen[$0]++' |
                      while read -r f; do [ -f "$f" ] && echo "$f"; done | head -n "$most")
fi
if [ ${#lint[@]} -gt 0 ]; then
  # Only for the flags of every file: a build may compile units of several (TESSERA_UNITY).
  cmake -S . -B "$build/plain" -G Ninja -DTESSERA_UNITY=OFF >/dev/null
  alone=(--alone)
  [ "${TESSERA_LINT_ALL:-0}" = 1 ] && alone=()
  step "clang-tidy ($what)" "$venv/bin/python" tools/lint.py "$build/plain" "${alone[@]}" "${lint[@]}"
fi
exit $failed
