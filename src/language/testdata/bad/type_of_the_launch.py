from tessera.language import *


@kernel(threads=128)
def k(M: index(), X: Tensor[bf16, "M", 64 if M > 3 else 32]):
    sync()
