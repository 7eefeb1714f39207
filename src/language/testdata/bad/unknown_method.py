from tessera.language import *


@kernel(threads=128)
def k(K: index(multiple=8)):
    full = barrier(4, arrivals=4)
    for k in ring(K, 64, 4):
        full[k].wiat()
