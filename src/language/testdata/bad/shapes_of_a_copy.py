from tessera.language import *


@kernel(threads=128)
def k(M: index(), K: index(multiple=8), A: Tensor[bf16, "M", "K"], BM: const = 128):
    a = shared(bf16, [4, BM, 32])
    full = barrier(4, arrivals=1)
    with one_thread():
        for m in tiles(M, BM):
            for k in ring(K, 64, 4):
                full[k].expect(a[k])
                tma.load(A[m, k], a[k], full[k])
