from tessera.language import *


@kernel
def k(K: index(multiple=8)):
    empty = barrier(4, arrivals=1)
    with role("math", warpgroups=2):
        for k in ring(K, 64, 4):
            empty[k].arrive()
