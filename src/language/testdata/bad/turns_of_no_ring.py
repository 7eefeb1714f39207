from tessera.language import *


@kernel(threads=128)
def k(M: index(multiple=64), N: index(multiple=64)):
    empty = barrier(2, arrivals=4, starts_complete=True)
    rows = tiles(M, 64)
    columns = tiles(N, 64)
    for turn in next_turns(rows, columns):
        empty[turn].wait()
