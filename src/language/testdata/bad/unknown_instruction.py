from tessera.language import *


@kernel(threads=128)
def k():
    issue("mbarrier.wait_for", 0, 1)
