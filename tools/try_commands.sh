#!/usr/bin/env bash
# Runs the commands of README.md's first block that set up what they need, but `./dev test`, of which this is a part.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$(sed -n '/^<!-- run by tools\/try_commands.sh -->$/,/^```$/p' README.md | sed '1,2d;$d')" = "./dev optimize examples/minigpt.py
./dev test" ] || { echo "tools/try_commands.sh: README.md shows other commands than these" >&2; exit 1; }
./dev optimize examples/minigpt.py --seconds 20 -q
[ -s out/minigpt/report.html ] && [ -s out/minigpt/composed.py ]
