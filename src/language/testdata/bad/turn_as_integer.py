from tessera.language import *


@kernel(threads=128)
def k(K: index(multiple=8)):
    empty = barrier(4, arrivals=4)
    for k in ring(K, 64, 4):
        if k > 0:
            empty[k - 1].arrive()
