from tessera.language import *


@kernel(threads=128)
def k():
    a = shared(e4m3, [64, 128], swizzle=128)
    b = shared(e4m3, [128, 128], swizzle=128, contiguous=0)
    acc = registers(f32, [64, 128])
    wgmma.fence()
    wgmma(a, b.T, acc, start=True)
