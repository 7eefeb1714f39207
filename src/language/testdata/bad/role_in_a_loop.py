from tessera.language import *


@kernel
def k(M: index()):
    for m in tiles(M, 128):
        with role("math", warpgroups=1):
            sync()
