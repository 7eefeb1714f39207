from tessera.language import *


@kernel(threads=128)
def k(A: Tensor[bf16, "M", 64]):
    a = shraed(bf16, [128, 64])
