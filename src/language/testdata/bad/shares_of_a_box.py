from tessera.language import *


@kernel(threads=128, cluster=4)
def k(X: Tensor[bf16, 6, 64]):
    x = shared(bf16, [6, 64], swizzle=128)
    full = barrier(1)
    with one_thread():
        full[0].expect(x)
        tma.load(X[:, :], x, full[0], share=True)
