from tessera.language import *


@kernel(threads=128)
def k(K: index(multiple=8)):
    full = barrier(3, arrivals=1)
    for k in ring(K, 64, 4):
        full[k].wait()
