"""The command `tessera` of an installed wheel: the package's own binary, with this interpreter for its Python side.

Imports nothing of PyTorch, so that `tessera doctor` can say that it is missing.
"""

from __future__ import annotations

import os
import sys

from tessera.common import places


def main() -> int:
    binary = os.environ.get("TESSERA_BINARY") or str(places.package / "bin" / "tessera")
    os.environ.setdefault("TESSERA_PYTHON", sys.executable)
    try:
        os.execv(binary, [binary, *sys.argv[1:]])
    except OSError as e:
        print(
            f"error[TS0715]: the tessera binary does not start: {binary}: {e.strerror}\n"
            "  help: install the wheel again, or set TESSERA_BINARY to a built one",
            file=sys.stderr,
        )
        return 3


if __name__ == "__main__":
    sys.exit(main())
