from tessera.language import *


@kernel
def k():
    with role("math", warpgroups=1), one_thread():
        wgmma.fence()
