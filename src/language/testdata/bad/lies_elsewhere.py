from tessera.language import *


@kernel
def k():
    with role("math", warpgroups=1):
        acc = registers(f32, [64, 32], layout="wgmma")
        x = registers(f32, [64, 32], layout="(128,16):(16,1)")
        acc[:] = acc + x
