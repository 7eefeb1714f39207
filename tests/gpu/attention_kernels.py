"""The attention part of tile_kernels.py: cases, references and peers."""

import math

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def problem(
    batch, heads, kv_heads, queries, keys, head_dim, precision, causal=True, mask=False, band=None, softcap=0.0
):
    """`band`: (lower, upper), the keys that a query sees by their distance from it; then neither causal nor mask."""
    dtype = {"tf32": "f32", "fp32": "f32", "bf16": "bf16", "fp16": "f16"}[precision]
    return {
        "batch": batch,
        "heads": heads,
        "kv_heads": kv_heads,
        "queries": queries,
        "keys": keys,
        "head_dim": head_dim,
        "causal": causal and band is None,
        "mask": mask,
        "band": band,
        "softcap": softcap,
        "dtype": dtype,
        "precision": precision,
    }


# (problem, how many of its configurations)
RACES = (
    (problem(128, 8, 8, 512, 512, 96, "tf32"), 16),
    (problem(128, 8, 8, 512, 512, 96, "fp32"), 12),
    (problem(128, 8, 8, 512, 512, 96, "bf16"), 10),
    (problem(1, 32, 8, 2048, 2048, 128, "bf16"), 14),
    (problem(4, 32, 8, 2048, 2048, 128, "bf16"), 8),
)
ODD = (
    problem(2, 4, 2, 333, 333, 96, "tf32"),
    problem(2, 3, 3, 65, 131, 64, "fp32", causal=False),
    problem(1, 4, 1, 200, 77, 40, "bf16", causal=False),
    problem(1, 2, 2, 129, 129, 72, "fp16", mask=True, causal=False),
    problem(1, 2, 1, 100, 100, 256, "fp32"),
    problem(1, 2, 1, 100, 100, 256, "bf16"),
)


def inputs(spec: dict, broken: bool) -> list:
    """q, k, v and the mask; `broken` puts a NaN and an inf into two queries."""
    import torch

    dtype = getattr(torch, DTYPES[spec["dtype"]])

    def tensor(heads, length):
        return torch.randn(spec["batch"], heads, length, spec["head_dim"], device="cuda").to(dtype)

    out = [tensor(spec["heads"], spec["queries"])]
    out += [tensor(spec["kv_heads"], spec["keys"]) for _ in range(2)]
    if spec["mask"]:
        mask = torch.randn(spec["queries"], spec["keys"], device="cuda").to(dtype)
        mask[:, ::3] = -math.inf
        out.append(mask)
    if broken:
        out[0][0, 0, 3, 1] = math.nan
        out[0][0, 0, 7, 2] = math.inf
    return out


def seen(spec: dict, device):
    """The band as a mask of truth values."""
    import torch

    lower, upper = spec["band"]
    return torch.ones(spec["queries"], spec["keys"], dtype=torch.bool, device=device).triu(lower).tril(upper)


def flex(spec: dict, tensors: list):
    """FlexAttention, compiled, of a band or of a causal mask: blocks outside of it are skipped."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    lower, upper = spec["band"] or (-spec["queries"], 0 if spec["causal"] else spec["keys"])
    cap = spec["softcap"]

    def capped(score, _batch, _head, _query, _key):
        return cap * torch.tanh(score / cap)

    def visible(_batch, _head, query, key):
        return (key - query >= lower) & (key - query <= upper)

    blocks = create_block_mask(visible, None, None, spec["queries"], spec["keys"])
    torch._dynamo.reset()  # beyond some recompilations it would run op by op
    compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    shared = spec["heads"] != spec["kv_heads"]
    return lambda: compiled(*tensors[:3], block_mask=blocks, enable_gqa=shared, score_mod=capped if cap else None)


def reference(spec: dict, tensors: list):
    """In fp64, a batch entry at a time."""
    import torch

    group = spec["heads"] // spec["kv_heads"]
    out = []
    for b in range(spec["batch"]):
        q, k, v = (t[b].double() for t in tensors[:3])
        k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
        s = q @ k.transpose(-1, -2) / math.sqrt(spec["head_dim"])
        if spec["softcap"]:
            s = spec["softcap"] * (s / spec["softcap"]).tanh()
        if spec["mask"]:
            s = s + tensors[3].double()
        if spec["band"]:
            s = s.masked_fill(~seen(spec, "cuda"), -math.inf)
        if spec["causal"]:
            hidden = torch.ones(s.shape[-2:], dtype=torch.bool, device="cuda").triu(1)
            s = s.masked_fill(hidden, -math.inf)
        out.append(s.softmax(-1) @ v)
    return torch.stack(out)


def peers(spec: dict, tensors: list) -> dict:
    """torch's backends that take this problem, by name."""
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.backends.cuda.matmul.allow_tf32 = spec["precision"] == "tf32"
    backends = {
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "math": SDPBackend.MATH,
    }
    shared = spec["heads"] != spec["kv_heads"]
    mask = seen(spec, "cuda") if spec["band"] else tensors[3] if spec["mask"] else None
    calls = {}
    if spec["softcap"]:  # none of them caps scores
        return {"flex": flex(spec, tensors)}
    for name, backend in backends.items():

        def call(backend=backend):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(
                    *tensors[:3],
                    attn_mask=mask,
                    is_causal=spec["causal"],
                    enable_gqa=shared,
                )

        try:
            call()
            torch.cuda.synchronize()
            calls[name] = call
        except RuntimeError:
            continue
    return calls


def rms(got, want) -> float:
    """Relative RMS error over what is finite in fp64; inf where the non-finite places differ."""
    import torch

    finite = torch.isfinite(want)
    got = got.double()
    if not torch.equal(torch.isfinite(got), finite):
        return math.inf
    return ((got - want)[finite].norm() / want[finite].norm()).item()


def allowed(precision: str, library: float) -> float:
    """The evaluator's budget (docs/measuring.md); the library's own tf32 may be more exact than tf32."""
    factor, ulps, half_ulp, floor = {
        "fp32": (3, 8, 2.0**-25, 0),
        "tf32": (1.5, 8, 2.0**-25, 6e-4),
        "bf16": (1.5, 1, 2.0**-9, 0),
        "fp16": (1.5, 1, 2.0**-12, 0),
    }[precision]
    return max(factor * library + ulps * half_ulp, floor)


def check(run, spec: dict, race: bool) -> str:
    """What is wrong with a kernel, or an empty text."""
    import torch

    for seed in range(1 if race else 2):
        torch.manual_seed(seed)
        broken = seed == 1
        tensors = inputs(spec, broken)
        before = [t.clone() for t in tensors]
        out = torch.full_like(tensors[0], 777.0)
        run(*tensors, out)
        torch.cuda.synchronize()
        if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(before, tensors, strict=True)):
            return "inputs changed"
        want = reference(spec, tensors)
        found = peers(spec, tensors)
        errors = [rms(call(), want) for call in found.values()]
        library = min((e for e in errors if e < math.inf), default=0.0)
        ours = rms(out, want)
        if not ours <= allowed(spec["precision"], library):
            return f"RMS error {ours:.2e}, library {library:.2e}{', with inf and NaN' if broken else ''}"
    return ""


def title(spec: dict) -> str:
    heads = str(spec["heads"]) + (f"/{spec['kv_heads']}" if spec["kv_heads"] != spec["heads"] else "")
    return f"{spec['batch']}x{heads}x{spec['queries']}x{spec['head_dim']} {spec['precision']}"


def race(group: list[dict], runs: dict, times) -> str:
    """One problem: our three fastest configurations beside torch's backends, and the errors of the fastest."""
    import torch

    spec = group[0]["spec"]
    torch.manual_seed(0)
    tensors = inputs(spec, False)
    out = torch.empty_like(tensors[0])
    theirs = {name: call for name, call in peers(spec, tensors).items() if name != "math"}
    calls = list(theirs.values()) + [lambda r=runs[c["name"]]: r(*tensors, out) for c in group]
    ms = times(calls)
    ours = sorted(zip(ms[len(theirs) :], group, strict=True), key=lambda p: p[0])
    best, config = ours[0]
    runs[config["name"]](*tensors, out)
    want = reference(spec, tensors)
    flops = 4 * spec["batch"] * spec["heads"] * spec["queries"] * spec["keys"] * spec["head_dim"]
    flops /= 2 if spec["causal"] else 1
    lines = [f"{title(spec):28s} ours {best:.4f} ms {flops / best / 1e9:.0f} TFLOP/s, RMS error {rms(out, want):.2e}"]
    for (name, call), t in zip(theirs.items(), ms, strict=False):
        lines.append(f"    {name:10s} {t:.4f} ms x{t / best:.3f}, RMS error {rms(call(), want):.2e}")
    for t, c in ours[:4]:
        lines.append(f"    {t:.4f} {c['config']}")
    first = next(t for t, c in ours if c is group[0])
    lines.append(f"    the first of the list: {first:.4f}")
    return "\n".join(lines)
