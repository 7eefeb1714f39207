from tessera.language import *


def twice(x):
    return twice(x) + x


@kernel(threads=128)
def k(M: index(), A: Tensor[f32, "M", 128]):
    for m in tiles(M, 4):
        y = twice(load(A[m, :]))
