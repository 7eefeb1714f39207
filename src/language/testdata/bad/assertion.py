from tessera.language import *


@kernel
def k(BM: const = 96):
    assert BM % 64 == 0, "a warpgroup makes 64 rows"
