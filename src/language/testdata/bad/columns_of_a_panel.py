from tessera.language import *


@kernel(threads=128)
def k(BN: const = 96):
    b = shared(bf16, [4, BN, 64], swizzle=128, contiguous=1)
