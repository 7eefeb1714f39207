from tessera.language import *


@kernel(threads=128)
def k(K: index()):
    total = 0
    for i in range(K):
        total = total + 1
