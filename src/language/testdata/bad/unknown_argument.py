from tessera.language import *


@kernel(threads=128)
def k():
    a = shared(bf16, [128, 64], swizle=128)
