from tessera.language import *


@kernel(threads=128)
def k(M: index(), A: Tensor[bf16, "M", 64]):
    a = shared(bf16, [M, 64])
