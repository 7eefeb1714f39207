from tessera.language import *


@kernel
def k():
    a = shared(bf16, [64, 64], swizzle=128)
    b = shared(f16, [64, 64], swizzle=128)
    with role("math", warpgroups=1):
        acc = registers(f32, [64, 64])
        wgmma(a, b.T, acc)
