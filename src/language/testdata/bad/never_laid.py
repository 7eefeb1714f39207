from tessera.language import *


@kernel
def k():
    with role("math", warpgroups=1):
        acc = registers(f32, [64, 32])
