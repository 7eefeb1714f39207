"""The products that gemm_kernels.py builds, checks and times: problems for realize_tool."""

STOCK = ["cutlass_gemm"]
LONG_K = dict(m=256, n=256, k=524288, b_major="n")
BATCHED = dict(m=512, n=1024, k=2048, batch=128, b_major="n")
SQUARE = dict(m=4096, n=4096, k=4096, b_major="n")
TF32 = dict(dtype="float32", precision="tf32")
FP32 = dict(dtype="float32", precision="fp32")
FP8 = dict(dtype="float8_e4m3fn", precision="fp8", out_dtype="bfloat16")
POSITIVE = dict(FP8, positive=True)
GATED = dict(n=14336, k=4096, epilogue="gated_silu")
ROTARY = dict(m=2048, n=6144, k=4096, epilogue="rotary", rotated=5120, head_dim=128)
ONE, TWO = ["cutlass_gated_fused"], ["cutlass_gated"]
WGMMA = ["wgmma_gemm"]
SLICES = dict(realizers=["wgmma_split_k"], every_launch=True)
BOTH = ["wgmma_gemm", "wgmma_split_k"]

# Timed. `limit`: how many candidates of each realizer, best predictions first.
PROBLEMS = [
    dict(SQUARE, name="L1-1 bf16", limit=4, realizers=[*STOCK, "cublaslt"]),
    dict(BATCHED, name="L1-3 bf16", limit=4, realizers=[*STOCK, "cublaslt"]),
    dict(LONG_K, name="L1-6 bf16", limit=4, realizers=["cutlass_split_k"]),
    dict(SQUARE, name="L1-1 tf32", limit=3, realizers=STOCK, **TF32),
    dict(BATCHED, name="L1-3 tf32", limit=3, realizers=STOCK, **TF32),
    dict(LONG_K, name="L1-6 tf32", limit=3, realizers=["cutlass_split_k"], **TF32),
    dict(SQUARE, name="L1-1 fp32", limit=4, realizers=["cutlass_gemm_fp32"], **FP32),
    dict(BATCHED, name="L1-3 fp32", limit=3, realizers=["cutlass_gemm_fp32"], **FP32),
    dict(LONG_K, name="L1-6 fp32", limit=2, realizers=["cutlass_gemm_fp32"], **FP32),
    dict(m=65536, n=2304, k=768, epilogue="bias", name="qkv", limit=4, realizers=[*STOCK, "cublaslt"]),
    dict(m=65536, n=3072, k=768, epilogue="bias_gelu", name="up+gelu", limit=4, realizers=[*STOCK, "cublaslt"]),
    dict(m=65536, n=768, k=3072, epilogue="bias_residual", name="down+res", limit=4, realizers=[*STOCK, "cublaslt"]),
    dict(m=2048, n=6144, k=4096, name="llama qkv", limit=3, realizers=STOCK),
    dict(m=2048, n=4096, k=14336, epilogue="residual", name="llama down", limit=4, realizers=STOCK),
]
# Timed in the same way, by name of the set. Problems with the same kind of text share their builds.
SETS = {
    "gated": [
        dict(GATED, m=2048, name="gated in one, 2048", limit=8, realizers=ONE),
        dict(GATED, m=8192, name="gated in one, 8192", limit=4, realizers=ONE),
        dict(GATED, m=2048, name="gated in two, 2048", limit=2, realizers=TWO),
        dict(GATED, m=8192, name="gated in two, 8192", limit=2, realizers=TWO),
    ],
    "array": [
        dict(BATCHED, name="L1-3 bf16, pointers", limit=2, realizers=["cutlass_gemm_array", "cutlass_gemm"]),
        dict(
            m=2048, n=2048, k=128, batch=64, heads=32, name="heads in rows", limit=2, realizers=["cutlass_gemm_array"]
        ),
    ],
    "results": [
        dict(m=65536, n=3072, k=768, epilogue="bias_silu_saved", name="up+silu, saved", limit=2, realizers=STOCK),
        dict(m=2048, n=14336, k=4096, epilogue="gated_silu_saved", name="gated, saved", limit=2, realizers=ONE),
    ],
    "fp8": [
        dict(m=4096, n=4096, k=4096, name="square fp8", limit=4, realizers=[*STOCK, "cublaslt"], **FP8),
        dict(m=8192, n=14336, k=4096, name="up fp8", limit=4, realizers=[*STOCK, "cublaslt"], **FP8),
    ],
    "rotary": [
        dict(ROTARY, name="llama qkv + rotary", limit=6, realizers=STOCK),
        dict(dict(ROTARY, epilogue="scaled_rotary"), name="llama qkv of raw + rotary", limit=4, realizers=STOCK),
        dict(m=2048, n=6144, k=4096, name="llama qkv alone", limit=3, realizers=STOCK),
    ],
    "longk": [
        dict(LONG_K, name="L1-6 bf16, slices", limit=8, realizers=["cutlass_split_k"]),
    ],
}
# The same products in plain CUDA C++.
SETS["wgmma"] = [
    dict(SQUARE, name="L1-1 bf16", limit=12, realizers=WGMMA),
    dict(m=8192, n=8192, k=8192, name="8192 bf16", limit=8, realizers=WGMMA),
    dict(BATCHED, name="L1-3 bf16", limit=8, realizers=WGMMA),
    dict(m=65536, n=2304, k=768, epilogue="bias", name="qkv", limit=8, realizers=WGMMA),
    dict(m=65536, n=3072, k=768, epilogue="bias_gelu", name="up+gelu", limit=8, realizers=WGMMA),
    dict(m=65536, n=768, k=3072, epilogue="bias_residual", name="down+res", limit=8, realizers=WGMMA),
    dict(m=2048, n=6144, k=4096, name="llama qkv", limit=8, realizers=WGMMA),
    dict(ROTARY, name="llama qkv + rotary", limit=12, realizers=WGMMA),
    dict(dict(ROTARY, epilogue="scaled_rotary"), name="llama qkv of raw + rotary", limit=8, realizers=WGMMA),
    dict(m=2048, n=4096, k=14336, epilogue="residual", name="llama down", limit=8, realizers=WGMMA),
    dict(m=4096, n=1024, k=1024, epilogue="bias_gelu", name="small", limit=12, realizers=WGMMA),
    dict(GATED, m=2048, name="gated, 2048", limit=8, realizers=["wgmma_gated"]),
    dict(GATED, m=8192, name="gated, 8192", limit=4, realizers=["wgmma_gated"]),
    dict(SQUARE, name="L1-1 fp32", limit=12, realizers=WGMMA, **FP32),
    dict(m=1024, n=8192, k=8192, epilogue="bias", name="L2-70 fp32", limit=12, realizers=WGMMA, **FP32),
    dict(BATCHED, name="L1-3 fp32", limit=8, realizers=WGMMA, **FP32),
    dict(m=2048, n=2048, k=128, batch=64, heads=32, name="heads in rows", limit=6, realizers=WGMMA),
    dict(m=4096, n=4096, k=4096, name="square tf32", limit=8, realizers=WGMMA, **TF32),
    dict(m=8192, n=4096, k=1024, epilogue="bias_gelu", name="up+gelu tf32", limit=6, realizers=WGMMA, **TF32),
    dict(LONG_K, name="L1-6 bf16", limit=8, **SLICES),
    dict(m=256, n=256, k=524288, name="256 x 256 x 524288 tf32", limit=4, **SLICES, **TF32),
    dict(LONG_K, name="L1-6 fp32", limit=8, **SLICES, **FP32),
    dict(m=512, n=512, k=4096, epilogue="bias_gelu", name="small, long k", limit=8, realizers=BOTH),
    dict(m=64, n=4096, k=14336, epilogue="bias", name="few rows", limit=8, realizers=BOTH),
    dict(m=1024, n=1024, k=8192, name="1024, long k", limit=8, realizers=BOTH),
    dict(m=512, n=512, k=4096, name="small, long k fp32", limit=8, realizers=BOTH, **FP32),
]
# Products in the kernel language (kernels/gemm.py), beside those in plain CUDA C++.
TILE = ["tile_gemm"]
BESIDE = dict(realizers=["tile_gemm", "wgmma_gemm"], limit=8)
SETS["tile"] = [
    dict(m=1024, n=1024, k=1024, b_major="n", name="1024 bf16", **BESIDE),
    dict(m=2048, n=2048, k=2048, b_major="n", name="2048 bf16", **BESIDE),
    dict(SQUARE, name="L1-1 bf16", **BESIDE),
    dict(m=4096, n=4096, k=4096, name="4096 bf16, k-major", **BESIDE),
    dict(m=8192, n=8192, k=8192, name="8192 bf16", **BESIDE),
    dict(m=8192, n=8192, k=8192, dtype="float16", name="8192 fp16", **BESIDE),
    dict(m=16384, n=16384, k=16384, name="16384 bf16", **dict(BESIDE, limit=3)),
    dict(BATCHED, name="L1-3 bf16", **BESIDE),
    dict(m=8192, n=6144, k=4096, name="llama qkv, 8192", **BESIDE),
    dict(m=8192, n=28672, k=4096, name="llama up, 8192", **BESIDE),
    dict(m=8192, n=4096, k=14336, name="llama down, 8192", **BESIDE),
    dict(m=65536, n=2304, k=768, epilogue="bias", name="qkv", **BESIDE),
    dict(m=65536, n=3072, k=768, epilogue="bias_gelu", name="up+gelu", **BESIDE),
    dict(m=65536, n=768, k=3072, epilogue="bias_residual", name="down+res", **BESIDE),
    dict(m=2048, n=6144, k=4096, name="llama qkv", **BESIDE),
    dict(m=2048, n=4096, k=14336, epilogue="residual", name="llama down", **BESIDE),
    dict(m=4096, n=1024, k=1024, epilogue="bias_gelu", name="small", **BESIDE),
    dict(m=4096, n=4096, k=4096, name="square tf32", **BESIDE, **TF32),
    dict(m=8192, n=4096, k=1024, epilogue="bias_gelu", name="up+gelu tf32", **BESIDE, **TF32),
    # Of elements that do not lie along K, beside the only other kernels that take them.
    dict(SQUARE, name="L1-1 tf32", limit=6, realizers=[*TILE, *STOCK], **TF32),
    dict(BATCHED, name="L1-3 tf32", limit=6, realizers=[*TILE, *STOCK], **TF32),
    dict(m=4096, n=4096, k=4096, name="square fp8", limit=8, realizers=[*TILE, "cublaslt"], **FP8),
    dict(m=8192, n=8192, k=8192, name="8192 fp8", limit=8, realizers=[*TILE, "cublaslt"], **FP8),
    # Sums of one sign: what the tensor cores cut off adds up.
    dict(m=4096, n=4096, k=4096, name="square fp8, positive", limit=12, realizers=TILE, **POSITIVE),
    dict(m=8192, n=8192, k=8192, name="8192 fp8, positive", limit=12, realizers=TILE, **POSITIVE),
]
# Two products that share A, and columns that make results in pairs.
SETS["tile_pairs"] = [
    dict(GATED, m=2048, name="gated, 2048", limit=12, realizers=["tile_gated", "wgmma_gated"]),
    dict(GATED, m=8192, name="gated, 8192", limit=8, realizers=["tile_gated", "wgmma_gated"]),
    dict(ROTARY, name="llama qkv + rotary", **dict(BESIDE, limit=12)),
    dict(dict(ROTARY, epilogue="scaled_rotary"), name="llama qkv of raw + rotary", **BESIDE),
]
SETS["tile"] += SETS["tile_pairs"]
# At the accuracy of float32 (kernels/gemm_fp32.py), beside both others that reach it.
BY_PARTS = dict(realizers=["tile_gemm", "wgmma_gemm", "cutlass_gemm_fp32"], limit=12, **FP32)
SETS["tile_fp32"] = [
    dict(SQUARE, name="L1-1 fp32", **BY_PARTS),
    dict(m=4096, n=4096, k=4096, name="4096 fp32, k-major", **BY_PARTS),
    dict(BATCHED, name="L1-3 fp32", **BY_PARTS),
    dict(m=65536, n=2304, k=768, epilogue="bias", name="qkv fp32", **BY_PARTS),
    dict(m=65536, n=3072, k=768, epilogue="bias_gelu", name="up+gelu fp32", **BY_PARTS),
    dict(m=65536, n=768, k=768, epilogue="bias", name="out fp32", **BY_PARTS),
    # Sums of one sign: what the tensor cores cut off adds up.
    dict(m=4096, n=4096, k=4096, name="4096 fp32, positive", positive=True, **BY_PARTS),
]
# Verified with it: every configuration, at extents that no tile divides, in all layouts.
TILE_FP32_CHECKS = [
    dict(m=520, n=264, k=136, epilogue="bias_residual", **FP32),
    dict(m=520, n=264, k=1032, a_major="m", b_major="n", **FP32),
    dict(m=260, n=132, k=100, batch=2, shared_b=True, a_major="m", epilogue="bias", **FP32),
    dict(m=260, n=132, k=100, batch=2, b_major="n", epilogue="bias_gelu", **FP32),
    dict(m=260, n=132, k=100, batch=3, d_major="m", epilogue="bias", **FP32),
    dict(m=67, n=70, k=136, epilogue="bias_residual", **FP32),
]
# Products with too few tiles for the machine: slices of k (kernels/gemm_slices.py). They belong to `tile`.
BY_SLICES = dict(realizers=["tile_gemm", "wgmma_split_k"], limit=16)
SETS["slices"] = [
    dict(m=16, n=4096, k=14336, name="decode 16", **BY_SLICES),
    dict(m=1, n=4096, k=14336, name="decode 1", **BY_SLICES),
    dict(m=64, n=4096, k=14336, name="decode 64", **BY_SLICES),
    dict(m=16, n=4096, k=14336, epilogue="bias_residual", name="decode 16, bias and residual", **BY_SLICES),
    dict(LONG_K, name="L1-6 bf16", **BY_SLICES),
    dict(LONG_K, dtype="float16", name="L1-6 fp16", **BY_SLICES),
    dict(m=256, n=256, k=524288, name="256 x 256 x 524288 tf32", **BY_SLICES, **TF32),
    # Of elements that do not lie along K, beside the only other kernels that take them.
    dict(LONG_K, name="L1-6 tf32", realizers=["tile_gemm", "cutlass_split_k"], limit=16, **TF32),
    dict(m=512, n=512, k=4096, epilogue="bias_gelu", name="small, long k", **BY_SLICES),
    dict(m=1024, n=1024, k=8192, name="1024, long k", **BY_SLICES),
]
# Rows that begin at no multiple of 16 bytes: copied first (kernels/copies.py), beside the only other kernels that take them.
ANYWHERE = dict(realizers=["tile_gemm", "cutlass_gemm_sm80"], limit=9)
SETS["unaligned"] = [
    dict(
        m=262144, n=256, k=316, epilogue="bias_relu", dtype="float16", precision="fp16", name="NeRF, k 316", **ANYWHERE
    ),
    dict(m=262144, n=256, k=60, epilogue="bias_relu", dtype="float16", precision="fp16", name="NeRF, k 60", **ANYWHERE),
    dict(m=4096, n=4096, k=4092, name="4096 x 4096 x 4092", **ANYWHERE),
    dict(m=4096, n=4096, k=4094, name="4096 x 4096 x 4094", **ANYWHERE),
    dict(m=4096, n=4096, k=4095, name="4096 x 4096 x 4095", **ANYWHERE),
    # Where a launch takes as long as the work.
    dict(m=512, n=512, k=510, epilogue="bias_gelu", name="512 x 512 x 510", **ANYWHERE),
    dict(m=64, n=304, k=77, epilogue="bias_relu", name="64 x 304 x 77", **ANYWHERE),
]
# Verified with them: vectors of 4, 2 and 1, extents that no tile divides, batches; copies of one operand, and of all types.
UNALIGNED_CHECKS = [
    dict(m=264, n=511, k=512, b_major="n", epilogue="bias"),
    dict(m=511, n=264, k=333, a_major="m", epilogue="bias_residual"),
    dict(m=201, n=203, k=77, batch=3, a_major="m", b_major="n"),
    dict(m=300, n=513, k=511, epilogue="bias_gelu", **TF32),
    dict(m=301, n=200, k=511, epilogue="bias", **FP32),
    dict(m=300, n=512, k=1000, dtype="float8_e4m3fn", precision="fp8", out_dtype="bfloat16"),
    dict(m=300, n=512, k=1001, dtype="float8_e4m3fn", precision="fp8", out_dtype="bfloat16"),
    dict(m=1000, n=301, k=77, epilogue="bias_gelu"),
    dict(m=67, n=70, k=134, epilogue="bias_residual"),
    dict(m=520, n=264, k=140, epilogue="column_scale", out_dtype="float32"),
    dict(m=264, n=136, k=202, dtype="float16", precision="fp16", epilogue="bias_silu_saved"),
    dict(m=200, n=301, k=77, batch=3, epilogue="scalar"),
    dict(m=5, n=33, k=3),
]
# Verified with them: all slice counts, extents that no tile or slice divides, all layouts.
IN_SLICES = dict(limit=16, every_launch=True)
SLICE_CHECKS = [
    dict(m=5, n=264, k=4104, epilogue="bias", **IN_SLICES),
    dict(m=128, n=64, k=8200, epilogue="bias_gelu", **IN_SLICES),
    dict(m=136, n=72, k=8200, a_major="m", b_major="n", epilogue="residual", **IN_SLICES),
    dict(m=264, n=200, k=16392, d_major="m", epilogue="column_scale", **IN_SLICES),
    dict(m=67, n=70, k=8200, epilogue="bias_residual", **IN_SLICES),
    dict(m=24, n=520, k=8200, b_major="n", epilogue="bias_silu_saved", **IN_SLICES),
    dict(m=40, n=520, k=8200, out_dtype="float32", epilogue="scalar", **IN_SLICES),
    dict(m=132, n=68, k=8188, epilogue="bias_residual", **IN_SLICES, **TF32),
    dict(m=132, n=68, k=8188, b_major="n", epilogue="bias_residual", **IN_SLICES, **TF32),
    dict(m=260, n=132, k=8188, a_major="m", epilogue="bias_gelu", **IN_SLICES, **TF32),
    dict(m=20, n=516, k=8188, b_major="n", d_major="m", epilogue="bias", **IN_SLICES, **TF32),
]
# Verified with it: extents that no tile divides, all layouts, every kind of operand.
TILE_CHECKS = [
    dict(m=520, n=264, k=136),
    dict(m=520, n=264, k=136, a_major="m", b_major="n", epilogue="column_scale"),
    dict(m=520, n=520, k=1032, a_major="m", epilogue="bias_residual"),
    dict(m=520, n=520, k=1032, b_major="n", epilogue="two_residuals"),
    dict(m=264, n=136, k=72, batch=3, shared_b=True, epilogue="scalar"),
    dict(m=264, n=136, k=72, batch=3, epilogue="bias_residual"),
    dict(m=392, n=200, k=328, d_major="m", epilogue="bias"),
    dict(m=264, n=136, k=200, dtype="float16", epilogue="bias_gelu"),
    dict(m=67, n=70, k=136, epilogue="bias_residual"),
    dict(m=264, n=136, k=200, out_dtype="float32", epilogue="bias_gelu"),
    dict(m=272, n=144, k=80, epilogue="bias_gelu", **FP8),
    # Twelve have promoted sums; the plain ones behind them are as inexact as verification refuses.
    dict(m=528, n=272, k=4112, limit=12, **POSITIVE),
    dict(m=272, n=144, k=1040, epilogue="bias_gelu", limit=12, **FP8),
    dict(m=520, n=264, k=136, batch=3, epilogue="bias_silu_saved"),
    dict(m=520, n=264, k=1032, epilogue="bias_residual", **TF32),
    dict(m=520, n=264, k=1032, b_major="n", epilogue="bias_residual", **TF32),
    dict(m=520, n=264, k=136, a_major="m", epilogue="column_scale", **TF32),
    dict(m=264, n=136, k=100, batch=3, b_major="n", epilogue="bias_gelu", **TF32),
]
# Verified with "tile" and "tile_pairs": rows that end within a tile, tables shorter than the rows, a part without an own
# epilogue that ends within a tile, all columns turned, biases and factors before, both orders of the weights.
TILE_PAIR_CHECKS = [
    dict(m=520, n=264, k=136, epilogue="gated_silu", realizers=["tile_gated"]),
    dict(m=520, n=264, k=136, b_major="n", epilogue="gated_silu_saved", realizers=["tile_gated"]),
    dict(m=260, n=132, k=100, epilogue="gated_silu_saved", realizers=["tile_gated"], **TF32),
    dict(m=519, n=1280, k=136, epilogue="rotary", rotated=1024, head_dim=128),
    dict(m=263, n=456, k=136, epilogue="rotary", rotated=384, head_dim=64),
    dict(m=384, n=512, k=72, epilogue="bias_rotary", rotated=512, head_dim=64, positions=128),
    dict(m=65, n=256, k=136, epilogue="rotary", rotated=256, head_dim=128),
    dict(m=519, n=384, k=136, epilogue="scaled_rotary", rotated=256, head_dim=128),
    dict(m=132, n=384, k=72, epilogue="rotary", rotated=256, head_dim=64, **TF32),
]
# Verified with it: every configuration, at extents that no tile divides, in all layouts.
WGMMA_CHECKS = [
    dict(m=520, n=264, k=136, epilogue="bias_silu_saved"),
    dict(m=520, n=264, k=136, a_major="m", b_major="n", epilogue="column_scale"),
    dict(m=520, n=520, k=1032, a_major="m", epilogue="bias_residual"),
    dict(m=520, n=520, k=1032, b_major="n", epilogue="two_residuals"),
    dict(m=264, n=136, k=72, batch=3, shared_b=True, epilogue="scalar"),
    dict(m=392, n=200, k=328, d_major="m", epilogue="bias"),
    dict(m=264, n=136, k=200, dtype="float16", epilogue="bias_gelu"),
    dict(m=520, n=264, k=136, epilogue="bias_residual", **FP32),
    dict(m=520, n=264, k=1032, a_major="m", b_major="n", **FP32),
    dict(m=260, n=132, k=100, batch=2, shared_b=True, a_major="m", epilogue="bias", **FP32),
    dict(m=260, n=132, k=100, batch=2, b_major="n", epilogue="bias_gelu", **FP32),
    dict(m=260, n=512, k=136, epilogue="bias_rotary", rotated=384, head_dim=64, positions=65, **FP32),
    dict(m=264, n=136, k=72, batch=6, heads=3, epilogue="bias_residual"),
    dict(m=264, n=136, k=72, batch=6, heads=3, epilogue="bias_residual", **FP32),
    dict(m=520, n=264, k=1032, epilogue="bias_residual", **TF32),
    dict(m=260, n=132, k=100, batch=3, shared_b=True, d_major="m", epilogue="bias", **TF32),
    dict(m=132, n=68, k=8188, epilogue="residual", **SLICES, **TF32),
    dict(m=260, n=132, k=100, epilogue="gated_silu_saved", realizers=["wgmma_gated"], **TF32),
    dict(m=128, n=64, k=8200, epilogue="bias_gelu", **SLICES),
    dict(m=136, n=72, k=8200, a_major="m", b_major="n", epilogue="residual", **SLICES),
    dict(m=264, n=200, k=16392, d_major="m", epilogue="column_scale", **SLICES),
    dict(m=132, n=68, k=8188, epilogue="bias_residual", **SLICES, **FP32),
    dict(m=132, n=68, k=8188, a_major="m", b_major="n", epilogue="bias", **SLICES, **FP32),
    dict(m=520, n=264, k=136, epilogue="gated_silu", realizers=["wgmma_gated"]),
    dict(m=520, n=264, k=136, b_major="n", epilogue="gated_silu_saved", realizers=["wgmma_gated"]),
]
# Verified with the sets "rotary" and "wgmma": rows that end within a tile, tables shorter than the rows, a part without
# an own epilogue that ends within a tile, all columns rotated.
ROTARY_CHECKS = [
    dict(m=519, n=1280, k=136, epilogue="rotary", rotated=1024, head_dim=128),
    dict(m=263, n=456, k=136, epilogue="rotary", rotated=384, head_dim=64),
    dict(m=390, n=512, k=72, epilogue="bias_rotary", rotated=256, head_dim=64, positions=130),
    dict(m=65, n=256, k=136, epilogue="rotary", rotated=256, head_dim=128),
    dict(m=200, n=512, k=72, epilogue="rotary", rotated=320, head_dim=80),
    dict(m=519, n=384, k=136, epilogue="scaled_rotary", rotated=256, head_dim=128),
    dict(m=129, n=384, k=72, epilogue="rotary", rotated=256, head_dim=64, **TF32),
]
# Only verified: odd extents, layouts, operand kinds. One candidate each.
CHECKS = [
    dict(m=520, n=264, k=136, a_major="m", b_major="n", epilogue="column_scale"),
    dict(m=264, n=136, k=72, batch=3, shared_b=True, epilogue="scalar"),
    dict(m=392, n=200, k=328, d_major="m", epilogue="bias"),
    dict(m=256, n=264, k=264, epilogue="two_residuals"),
    dict(m=260, n=132, k=100, a_major="m", epilogue="bias", **TF32),
    dict(m=260, n=132, k=100, a_major="m", b_major="n", **TF32),
    dict(m=128, n=64, k=8192, epilogue="bias_gelu", realizers=["cutlass_split_k"]),
    dict(m=132, n=68, k=8192, epilogue="residual", b_major="n", realizers=["cutlass_split_k"], **TF32),
    dict(m=67, n=70, k=130, epilogue="bias_residual", realizers=["cutlass_gemm_sm80"]),
    dict(m=129, n=65, k=36, batch=2, b_major="k", epilogue="bias_gelu", realizers=["cutlass_gemm_sm80"], **TF32),
    dict(m=520, n=264, k=136, epilogue="gated_silu", realizers=ONE),
    dict(m=520, n=264, k=136, b_major="n", epilogue="gated_silu", realizers=ONE),
    dict(m=260, n=132, k=100, epilogue="gated_silu_saved", realizers=ONE, **TF32),
    dict(m=264, n=136, k=72, batch=6, heads=3, epilogue="bias_residual", realizers=["cutlass_gemm_array"]),
    dict(m=264, n=136, k=72, batch=3, epilogue="bias_silu_saved"),
    dict(m=272, n=144, k=80, epilogue="bias_gelu", **FP8),
    dict(
        m=260,
        n=132,
        k=100,
        batch=2,
        shared_b=True,
        a_major="m",
        epilogue="bias",
        realizers=["cutlass_gemm_fp32"],
        **FP32,
    ),
]


def problems_of(sets: list[str]) -> list[dict]:
    problems = PROBLEMS if "base" in sets else []
    if "tile" in sets and "slices" not in sets:
        sets = [*sets, "slices"]
    problems = problems + [p for name in sets if name in SETS for p in SETS[name]]
    if "rotary" in sets:
        problems += [dict(dict(realizers=STOCK, limit=3, check_only=True), **c) for c in ROTARY_CHECKS]
    if "wgmma" in sets:
        problems += [dict(dict(realizers=WGMMA, check_only=True), **c) for c in WGMMA_CHECKS + ROTARY_CHECKS]
    if "tile" in sets:
        problems += [dict(dict(realizers=TILE, check_only=True), **c) for c in TILE_CHECKS]
    if "unaligned" in sets:
        problems += [dict(dict(realizers=["tile_gemm"], limit=16, check_only=True), **c) for c in UNALIGNED_CHECKS]
    if "tile" in sets or "tile_pairs" in sets:
        problems += [dict(dict(realizers=TILE, check_only=True), **c) for c in TILE_PAIR_CHECKS]
    if "tile_fp32" in sets:
        problems += [dict(dict(realizers=TILE, check_only=True), **c) for c in TILE_FP32_CHECKS]
    if "slices" in sets:
        problems += [dict(dict(realizers=TILE, check_only=True), **c) for c in SLICE_CHECKS]
    if "checks" in sets:
        problems += [dict(dict(realizers=STOCK, limit=1, check_only=True), **c) for c in CHECKS]
    return problems
