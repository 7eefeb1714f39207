from tessera.language import *


@kernel
def k(K: index(multiple=8)):
    assert K % 16 == 0, "rows of the tensor are whole swizzles"
