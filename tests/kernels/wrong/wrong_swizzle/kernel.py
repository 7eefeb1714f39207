# A product of tiles in a ring of four slots, as a kernel of the core.
@kernel(
    threads=256,
    cluster=1,
    min_blocks=1,
    grid=min(multiprocessors, (M + 63) // 64 * ((N + 127) // 128)),
    means="C[i, j] = sum(A[i, k] * B[j, k], k)",
)
def gemm(
    M: Index[8, 2147483648, 8],
    N: Index[8, 2147483648, 8],
    K: Index[8, 2147483648, 8],
    A: Tensor[bf16, (M, K), (K, 1)],
    B: Tensor[bf16, (N, K), (K, 1)],
    C: Tensor[bf16, (M, N), (N, 1), out],
):
    A_map = tensor_map(A, dims=[1, 0], box=[64, 64], swizzle=128, fill=0)
    B_map = tensor_map(B, dims=[1, 0], box=[64, 128], swizzle=64, fill=0)
    pad = shared(bf16, "64:1", swizzle=None, at=0)
    a = shared(bf16, "(4,64,64):(4096,64,1)", swizzle=128, at=1024)
    b = shared(bf16, "(4,128,64):(8192,64,1)", swizzle=128, at=33792)
    full = barriers(4, at=99328)
    empty = barriers(4, at=99360)
    if warp == 0:
        with elected():
            for s in unrolled(0, 4):
                issue("mbarrier.init", full[s], 1)
                issue("mbarrier.init", empty[s], 4)
            issue("fence.mbarrier_init")
    issue("barrier.sync", 0, 256)
    i0 = (K + 63) // 64
    i1 = (N + 127) // 128
    i2 = ((M + 63) // 64 * i1 - block + blocks - 1) // blocks
    with role(loader, warps=[0, 4]) as loader_warp:
        if loader_warp == 0:
            with elected():
                for turn in range(0, i2):
                    for k in range(0, i0):
                        i3 = turn * i0 + k
                        i4 = i3 % 4
                        issue("mbarrier.wait", empty[i4], (i3 // 4 + 1) % 2)
                        issue("mbarrier.arrive_expect_tx", full[i4], 24576)
                        i5 = block + turn * blocks
                        issue("tma.load", a[i4, 0, 0], A_map, [k * 64, i5 // i1 * 64], full[i4], rank=2)
                        issue("tma.load", b[i4, 0, 0], B_map, [k * 64, i5 % i1 * 128], full[i4], rank=2)
    with role(math, warps=[4, 8]) as math_warp:
        acc = registers(f32, [64, 128], "((4,8,4,1),(2,2,16)):((128,1,16,64),(64,8,512))")
        for turn in range(0, i2):
            for k in range(0, i0):
                i6 = turn * i0 + k
                i7 = i6 % 4
                issue("mbarrier.wait", full[i7], i6 // 4 % 2)
                issue("wgmma.fence")
                i8 = math_warp // 4 * 64
                issue(
                    "wgmma.f32.bf16.bf16.ss", acc[0], a[i7, i8, 0], b[i7, 0, 0], select(k == 0, 0, 1), 1, 1, 0, 0, n=128
                )
                issue("wgmma.f32.bf16.bf16.ss", acc[0], a[i7, i8, 16], b[i7, 0, 16], 1, 1, 1, 0, 0, n=128)
                issue("wgmma.f32.bf16.bf16.ss", acc[0], a[i7, i8, 32], b[i7, 0, 32], 1, 1, 1, 0, 0, n=128)
                issue("wgmma.f32.bf16.bf16.ss", acc[0], a[i7, i8, 48], b[i7, 0, 48], 1, 1, 1, 0, 0, n=128)
                issue("wgmma.commit")
                issue("wgmma.wait", 0)
                with elected():
                    issue("mbarrier.arrive", empty[i7])
            issue("wgmma.wait", 0)
            values = registers(bf16, [64, 128], "((4,8,4,1),(2,2,16)):((128,1,16,64),(64,8,512))")
            values[0, "64:1"] = map(lambda x0: x0, acc[0, "64:1"], count=64)
            for vector in unrolled(0, 32):
                i9 = block + turn * blocks
                issue(
                    "store.global.4.bounded",
                    C[
                        i9 // i1 * 64 + (lane // 4 + math_warp * 16 + vector % 2 * 8),
                        i9 % i1 * 128 + (lane % 4 * 2 + vector // 2 * 8),
                    ],
                    values[vector * 2],
                    select(
                        i9 // i1 * 64 + (lane // 4 + math_warp * 16 + vector % 2 * 8) < M
                        and i9 % i1 * 128 + (lane % 4 * 2 + vector // 2 * 8) < N,
                        1,
                        0,
                    ),
                )
