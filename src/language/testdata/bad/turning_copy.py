from tessera.language import *


@kernel(threads=128)
def k(K: index(multiple=8), A: Tensor[bf16, 128, "K"]):
    a = shared(bf16, [128, 64], swizzle=128, contiguous=0)
    full = barrier(1)
    with one_thread():
        full[0].expect(a)
        tma.load(A[:, part(0, 64)], a, full[0])
