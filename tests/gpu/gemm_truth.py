"""The tensors of a problem of gemm_problems.py, what torch computes of them, and the call of torch that is timed beside."""


def tensors_of(torch, p, seed):
    """Logical tensors in the pattern's order without the result, and the result's empty tensor."""
    torch.manual_seed(seed)
    dtype = getattr(torch, p.get("dtype", "bfloat16"))
    out_dtype = getattr(torch, p.get("out_dtype", p.get("dtype", "bfloat16")))
    heads = p.get("heads", 0)
    batch, m, n, k = p.get("batch", 1), p["m"], p["n"], p["k"]

    def random(*shape, dtype=dtype, scale=1.0):
        wide = torch.bfloat16 if dtype.itemsize == 1 else dtype
        if p.get("positive"):  # uniform in [0, 1), as one of verification's inputs
            return torch.rand(shape, device="cuda", dtype=wide).to(dtype)
        return (torch.randn(shape, device="cuda", dtype=wide) * scale).to(dtype)

    def stored(rows, columns, columns_contiguous=True, batches=batch, scale=1.0, dtype=dtype):
        if heads:
            return random(batches // heads, rows, heads, columns, dtype=dtype, scale=scale).transpose(1, 2)
        shape = (batches, rows, columns) if columns_contiguous else (batches, columns, rows)
        x = random(*shape, dtype=dtype, scale=scale)
        return x if columns_contiguous else x.transpose(1, 2)

    a = stored(m, k, p.get("a_major", "k") == "k")
    bs = [
        stored(n, k, p.get("b_major", "k") == "k", 1 if p.get("shared_b") else batch, k**-0.5)
        for _ in range(2 if p.get("epilogue", "").startswith("gated_silu") else 1)
    ]
    epilogue, operands = p.get("epilogue", "none"), []
    row_major = p.get("d_major", "n") == "n"
    if epilogue.startswith("bias"):
        operands.append(random(1, 1, n, dtype=out_dtype))
    if epilogue == "column_scale":
        operands.append(random(1, m, 1, dtype=out_dtype))
    if epilogue == "scalar":
        operands.append(random(1, 1, 1, dtype=out_dtype))
    if epilogue == "scaled_rotary":
        operands.append(random(1, m, 1, dtype=torch.float32))
    if epilogue.endswith("rotary"):
        rows, width = p.get("positions", m), p["head_dim"]
        angles = torch.rand(1, rows, width, device="cuda") * 6.283
        operands += [angles.cos().to(out_dtype), angles.sin().to(out_dtype)]
    if epilogue.endswith("residual"):
        operands.append(stored(m, n, row_major, dtype=out_dtype))
    if epilogue == "two_residuals":
        operands += [stored(m, n, row_major, dtype=out_dtype) for _ in range(2)]
    results = [stored(m, n, row_major, dtype=out_dtype) for _ in range(2 if epilogue.endswith("_saved") else 1)]
    return [a, *bs, *operands], results


def product(torch, a, b):
    """a @ b^T. The peer must not pay for the batch dim that the description always has."""
    if a.dtype.itemsize == 1:
        one = torch.ones((), device="cuda")
        if a.shape[-1] % 16 or b.shape[1] % 16:  # cuBLAS refuses such rows: there the measure is rounding
            return (a[0].float() @ b[0].mT.float()).bfloat16()[None]
        return torch._scaled_mm(a[0], b[0].mT, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)[None]
    return (a[0] @ b[0].mT)[None] if a.shape[0] == 1 and b.shape[0] == 1 else a @ b.mT


def rotated(torch, p, y, cos, sin):
    """The first columns of y in heads, each with its halves rotated; the others as they are."""
    width, (rows, columns) = p["head_dim"], (y.shape[1], p["rotated"])
    x = y[..., :columns].unflatten(-1, (-1, width))
    cos, sin = (t.repeat(1, -(-rows // t.shape[1]), 1)[:, :rows, None] for t in (cos, sin))
    first, second = x.chunk(2, dim=-1)
    turned = x * cos + torch.cat((-second, first), dim=-1) * sin
    return torch.cat((turned.flatten(2), y[..., columns:]), dim=-1)


def reference(torch, p, tensors):
    """The results that torch computes, in the dtype of the tensors: our peer, and in fp64 the truth."""
    epilogue = p.get("epilogue", "none")
    silu = torch.nn.functional.silu
    if epilogue.startswith("gated_silu"):
        a, b0, b1 = tensors
        gate = product(torch, a, b0)
        y = silu(gate) * product(torch, a, b1)
        return [y, gate] if epilogue.endswith("_saved") else [y]
    a, b, *xs = tensors
    y = product(torch, a, b)
    if epilogue.endswith("rotary"):
        if epilogue == "scaled_rotary":
            y = (y * xs[0]).to(y.dtype)
        return [rotated(torch, p, y + xs[0] if epilogue == "bias_rotary" else y, *xs[-2:])]
    if epilogue == "bias_silu_saved":
        return [silu(y + xs[0]), y + xs[0]]
    for x in xs if epilogue not in ("column_scale", "scalar") else []:
        y = y + x if epilogue != "bias_gelu" else torch.nn.functional.gelu(y + x, approximate="tanh")
    return [y * xs[0] if epilogue in ("column_scale", "scalar") else y]


def fast_peer(torch, p, tensors):
    """The peer that is timed: bias through addmm, as torch.nn.Linear does; of rotary the product alone."""
    epilogue = p.get("epilogue", "none")
    if epilogue.endswith("rotary"):
        return lambda: product(torch, *tensors[:2])
    if not epilogue.startswith("bias") or epilogue.endswith("_saved") or tensors[0].shape[0] != 1:
        return lambda: reference(torch, p, tensors)
    a, b, bias, *rest = tensors
    a, b, bias = a[0], b[0], bias[0, 0]

    def run():
        y = torch.nn.functional.linear(a, b, bias)
        if epilogue == "bias_gelu":
            y = torch.nn.functional.gelu(y, approximate="tanh")
        return y + rest[0][0] if rest else y

    return run


def sample(torch, p, tensors):
    """Tensors cut to some rows, so that fp64 of a large problem stays quick; the rows' numbers."""
    m = p["m"]
    if m * p["n"] * p["k"] * p.get("batch", 1) < 2**36 or p.get("heads"):
        return tensors, slice(None), slice(None)
    rows = torch.arange(0, m, max(1, m // 128), device="cuda")
    batches = torch.arange(0, p.get("batch", 1), max(1, p.get("batch", 1) // 4), device="cuda")

    def cut(x):
        x = x[batches] if x.shape[0] > 1 else x
        return x

    a, *rest = tensors
    count = 2 if p.get("epilogue", "").startswith("gated_silu") else 1
    rest = [cut(x) if i < count or x.shape[1] == 1 else cut(x)[:, rows] for i, x in enumerate(rest)]
    return [cut(a)[:, rows], *rest], batches if p.get("batch", 1) > 1 else slice(None), rows
