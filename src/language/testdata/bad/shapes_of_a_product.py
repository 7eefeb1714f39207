from tessera.language import *


@kernel
def k(BM: const = 128, BN: const = 256, BK: const = 64):
    a = shared(bf16, [BM, BK], swizzle=128)
    b = shared(bf16, [BN, BK], swizzle=128)
    with role("math", warpgroups=2):
        acc = registers(f32, [BM, BN])
        wgmma(a, b, acc)
