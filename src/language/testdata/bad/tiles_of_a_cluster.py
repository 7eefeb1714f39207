from tessera.language import *


@kernel(threads=128, cluster=2)
def k(M: index(), N: index()):
    for m, n in tiles(M, 128, N, 256):
        sync()
