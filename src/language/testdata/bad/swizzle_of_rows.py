from tessera.language import *


@kernel(threads=128)
def k(BK: const = 128):
    a = shared(bf16, [4, 128, BK], swizzle=128)
