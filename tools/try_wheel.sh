#!/usr/bin/env bash
# Builds the wheel as `pip install .` does, installs it where there is nothing but Python and g++, and optimizes the example there:
#   tools/try_wheel.sh [WHEEL]      with WHEEL: a finished one instead of building
# As root on a Debian or Ubuntu with debootstrap the empty place is a chroot of Debian 12 with the packages python3-venv and g++.
# Else it is a virtual environment with a PATH of its own, which still sees this machine's libraries; the script says which it is.
# torch comes from the package index: the first time this takes some minutes and 6 GB below $TESSERA_TRY_PLACE (default: build-wheel).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
place=${TESSERA_TRY_PLACE:-$PWD/build-wheel}
mkdir -p "$place"
say() { printf '== %s\n' "$*" >&2; }

wheel=${1:-}
if [ -z "$wheel" ]; then
  say "building the wheel"
  rm -rf "$place/wheel"
  python3 -m venv "$place/builder"
  # In a folder that stays, so that the next time builds what changed.
  "$place/builder/bin/pip" wheel -q --disable-pip-version-check --no-deps -C build-dir="$place/cmake" -w "$place/wheel" .
  wheel=$(ls "$place"/wheel/tessera-*.whl)
fi

say "what the program needs of the system"
python3 - "$wheel" "$place/tessera" <<'PYTHON'
import re, subprocess, sys, zipfile
wheel, program = sys.argv[1:]
names = zipfile.ZipFile(wheel).namelist()
for wanted in ("tessera/bin/tessera", "tessera/include/tessera/kernel.h", "tessera/api.py"):
    assert wanted in names, f"the wheel lacks {wanted}"
with open(program, "wb") as f:
    f.write(zipfile.ZipFile(wheel).read("tessera/bin/tessera"))
listed = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
needed = set(re.findall(r"NEEDED.*\[(.*)\]", listed))
print(" ", *sorted(needed))
more = needed - {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
assert not more, f"the program needs more than the C library: {more}"
PYTHON

# A search of seconds, with nothing but what is listed here in the environment. pip keeps what reaches the package index.
script='
set -eu
cd "$HOME"
[ -x venv/bin/pip ] || python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check --force-reinstall --no-deps ./"$WHEEL"
venv/bin/pip install -q --disable-pip-version-check ./"$WHEEL"
export PATH="$HOME/venv/bin:$PATH" TESSERA_HOME="$HOME/tessera-home" OMP_WAIT_POLICY=passive
rm -rf "$TESSERA_HOME" out
tessera doctor
tessera optimize feed_forward.py --effort quick --place-all --peers eager --ablation false -q -o out
python - <<PYTHON
import json, sys
import torch
sys.path += [".", "out"]
from composed import load
from feed_forward import Model, get_inputs
model, (x,) = Model().eval(), get_inputs()
fast = load(model)
with torch.no_grad():
    torch.testing.assert_close(fast(x), model(x))
assert fast.status()["served"] == 1 and fast.status()["active"], fast.status()
report = json.load(open("out/report.json"))
assert report["verification"]["ok"] and report["kind"] in ("synthesized", "mixed"), report["kind"]
PYTHON
'
kept=("HOME=/root" "WHEEL=$(basename "$wheel")" "LANG=C.UTF-8")
while IFS= read -r line; do kept+=("$line"); done < <(env | grep -E '^(PIP_[A-Z_]*|https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY)=' || true)

if [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null; then
  root=$place/debian
  say "in a chroot of Debian 12 with python3-venv and g++: $root"
  [ -e "$root/.complete" ] || { debootstrap --variant=minbase --include=g++,python3-venv,ca-certificates bookworm "$root" >"$place/debootstrap.log"
                                touch "$root/.complete"; }
  # The network is the machine's: its names and the certificates that it trusts.
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  cp "$wheel" examples/feed_forward.py "$root/root/"
  mkdir -p "$root/proc"
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
  trap 'umount "$root/proc"' EXIT
  env -i "${kept[@]}" PATH=/usr/bin:/bin "$(command -v chroot)" "$root" bash -c "$script"
else
  say "no chroot (that needs root and debootstrap): a virtual environment, with g++ and the basic tools on PATH"
  home=$place/home
  mkdir -p "$home/bin"
  [ -x "$home/venv/bin/pip" ] || python3 -m venv "$home/venv"
  for tool in bash sh env cat ls rm mkdir uname dirname basename g++ as ld; do
    ln -sf "$(command -v "$tool")" "$home/bin/$tool"
  done
  cp "$wheel" examples/feed_forward.py "$home/"
  env -i "${kept[@]}" HOME="$home" PATH="$home/bin" bash -c "$script"
fi
say "the wheel works where there is nothing but Python and g++"
