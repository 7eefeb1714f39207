from tessera.language import *


@kernel
def k():
    with role("loader", warpgroups=1, registers=50):
        sync()
