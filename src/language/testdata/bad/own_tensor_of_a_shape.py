from tessera.language import *


@kernel(threads=128)
def k(M: index(), X: Tensor[bf16, "M", 256], Y: Tensor[bf16, "M", 256, out], change: fn = shifted):
    for m in tiles(M, 4):
        x = load(X[m, :], lanes=32)
        store(change(x), Y[m, :])


def shifted(x, SHIFT: Tensor[f32, 1, 128]):
    return x + load(SHIFT[:, :], like=x)
