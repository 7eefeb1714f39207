from tessera.language import *


def load_tile(box, to, barrier):
    barrier.expect(to)
    tma.load(box, to[part(0, 32), :], barrier)


@kernel(threads=128)
def k(A: Tensor[bf16, 64, 64]):
    a = shared(bf16, [64, 64], swizzle=128)
    full = barrier(1)
    with one_thread():
        load_tile(A[:, :], a, full[0])
