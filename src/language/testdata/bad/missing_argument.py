from tessera.language import *


@kernel(threads=128)
def k(K: index(multiple=8), A: Tensor[bf16, 128, "K"]):
    a = shared(bf16, [4, 128, 64], swizzle=128)
    full = barrier(4, arrivals=1)
    with one_thread():
        for k in ring(K, 64, 4):
            tma.load(A[part(0, 128), k], a[k])
