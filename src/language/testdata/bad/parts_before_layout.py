from tessera.language import *


@kernel
def k():
    with role("math", warpgroups=2):
        acc = registers(f32, [128, 256])
        y = registers(f32, [128, 64])
        y[:] = acc[:, part(0, 64)]
