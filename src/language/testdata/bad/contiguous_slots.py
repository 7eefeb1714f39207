from tessera.language import *


@kernel(threads=128)
def k():
    a = shared(bf16, [4, 128, 64], swizzle=128, contiguous=0)
