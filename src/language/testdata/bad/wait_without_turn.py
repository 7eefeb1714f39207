from tessera.language import *


@kernel(threads=128)
def k():
    full = barrier(3, arrivals=1)
    full[0].wait()
