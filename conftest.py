import os
import sys

# Compiled once for all tests and their processes, each of which may have a cache of its own.
os.environ.setdefault("TESSERA_EXTENSIONS", os.path.join(sys.prefix, "tessera-extensions"))
