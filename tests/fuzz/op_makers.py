"""Ops whose operands must fit each other: products, convolutions, attention, norms with weights, losses, recurrences.

A maker takes the generator and returns (template, operands), or None where nothing in the program fits it.
"""

from __future__ import annotations


def linear(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() >= 1)
    if x is None:
        return None
    t = g.tensor(x)
    width = t.shape[-1]
    out = g.r.choice([width, 4, 8, 16])
    w = g.parameter([out, width], t)
    form = g.r.choice(
        [
            "F.linear({0}, {1})",
            "F.linear({0}, {1}, {2})",
            "{0} @ {1}.t()",
            "({0} / 4096) @ {1}.t()",
            "torch.matmul({0}, {1}.t()) + {2}",
            "torch.einsum('...c,dc->...d', {0}, {1})",
            "F.linear({0} * 0.25, {1} * 0.5, {2})",
            "F.gelu(F.linear({0}, {1}, {2}))",
            "torch.relu({0} @ {1}.t())",
        ]
    )
    return form, [x, w, g.parameter([out], t)] if "{2}" in form else [x, w]


def products(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() in (2, 3))
    if x is None:
        return None
    t = g.tensor(x)
    y = g.pick(lambda u: u.shape == t.shape and u.dtype == t.dtype)
    if t.dim() == 2:
        forms = [
            "torch.mm({0}, {1}.t())",
            "{0}.t() @ {1}",
            "torch.mv({0}, {1}[0])",
            "torch.dot({0}[0], {1}[0])",
            "torch.outer({0}[0], {1}[:, 0])",
            "torch.addmm(torch.mm({0}, {1}.t()), {0}, {1}.t(), beta=0.5, alpha=2)",
            "torch.addmm({0}[:1, :1], {0}, {1}.t())",
            "{0} @ {1}.mT * 0.5 + 1",
        ]
    else:
        forms = [
            "torch.bmm({0}, {1}.mT)",
            "{0} @ {1}.mT",
            "torch.baddbmm({0} @ {1}.mT, {0}, {1}.mT, beta=0.5)",
            "torch.addbmm({0}[0] @ {1}[0].mT, {0}, {1}.mT)",
            "torch.einsum('bij,bkj->bik', {0}, {1})",
            "torch.einsum('bij,bij->b', {0}, {1})",
            "({0} @ {1}.mT).softmax(-1) @ {0}",
            "({0} @ {1}.mT * 0.4).masked_fill(torch.ones({0}.shape[1], {0}.shape[1], dtype=torch.bool).triu(1), -inf).softmax(-1) @ {1}",
            "({0} @ {1}.mT).tril() @ {1}",
        ]
    return g.r.choice(forms), [x, y]


def attention(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() in (3, 4))
    if x is None:
        return None
    t = g.tensor(x)
    k, v = (g.pick(lambda u: u.shape == t.shape and u.dtype == t.dtype) for _ in range(2))
    if t.dim() == 3 and t.shape[-1] % 2 == 0 and g.r.random() < 0.5:
        heads = "{{{0}}}.reshape({{{0}}}.shape[0], {{{0}}}.shape[1], 2, -1).transpose(1, 2)"
        q, kk, vv = (heads.format(i) for i in range(3))
        return f"F.scaled_dot_product_attention({q}, {kk}, {vv}).transpose(1, 2).reshape({{0}}.shape)", [x, k, v]
    forms = [
        "F.scaled_dot_product_attention({0}, {1}, {2})",
        "F.scaled_dot_product_attention({0}, {1}, {2}, is_causal=True)",
        "F.scaled_dot_product_attention({0}, {1}, {2}, scale=0.3)",
        "F.scaled_dot_product_attention({0}, {1}, {2}, attn_mask=torch.zeros({0}.shape[-2], {0}.shape[-2], dtype=torch.bool))",
        "F.scaled_dot_product_attention({0}, {1}, {2}, attn_mask=torch.ones({0}.shape[-2], {0}.shape[-2], dtype={0}.dtype))",
    ]
    return g.r.choice(forms), [x, k, v]


def norms(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() >= 2)
    if x is None:
        return None
    t = g.tensor(x)
    width, channels = t.shape[-1], t.shape[1]
    w, b = g.parameter([width], t), g.parameter([width], t)
    p, q = g.parameter([channels], t), g.parameter([channels], t)
    forms = [
        ("F.layer_norm({0}, {0}.shape[-1:], {1}, {2})", [x, w, b]),
        ("F.rms_norm({0}, {0}.shape[-1:], {1}, 1e-6)", [x, w]),
        ("{0} * torch.rsqrt({0}.square().mean(-1, keepdim=True) + 1e-6) * {1}", [x, w]),
        ("F.group_norm({0}, 1, {1}, {2})", [x, p, q]),
        ("F.instance_norm({0}, None, None, {1}, {2})", [x, p, q]),
        ("F.batch_norm({0}, {1}.detach(), {2}.detach().abs(), None, None, False)", [x, p, q]),
        ("{0} * {1} + {2}", [x, w, b]),
    ]
    return g.r.choice(forms)


def running_statistics(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() >= 2 and t.shape[0] > 1)
    if x is None:
        return None
    t = g.tensor(x)
    mean = g.buffer(f"draw([{t.shape[1]}], {g.dtype_of(t)!r}, 'zeros')")
    var = g.buffer(f"draw([{t.shape[1]}], {g.dtype_of(t)!r}, 'ones')")
    training = g.r.choice(["True", "s.training", "False"])
    return f"F.batch_norm({{0}}, {{1}}, {{2}}, None, None, {training}, 0.1)", [x, mean, var]


def convolution(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() in (3, 4) and min(t.shape[2:]) >= 2)
    if x is None:
        return None
    t = g.tensor(x)
    n, c = t.dim() - 2, t.shape[1]
    out = g.r.choice([2, 4])
    square = [2] * n
    forms = [
        (f"F.conv{n}d({{0}}, {{1}})", [x, g.parameter([out, c, *square], t)]),
        (f"F.conv{n}d({{0}}, {{1}}, {{2}}, padding=1)", [x, g.parameter([out, c, *square], t), g.parameter([out], t)]),
        (f"F.conv{n}d({{0}}, {{1}}, groups={c})", [x, g.parameter([c, 1, *square], t)]),
        (f"F.conv{n}d({{0}}, {{1}}, stride=2)", [x, g.parameter([out, c, *[1] * n], t)]),
        (f"F.conv_transpose{n}d({{0}}, {{1}}, stride=2)", [x, g.parameter([c, out, *square], t)]),
        (f"torch.relu(F.conv{n}d({{0}}, {{1}}))", [x, g.parameter([out, c, *square], t)]),
    ]
    return g.r.choice(forms)


def pooling(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() in (3, 4) and min(t.shape[2:]) >= 2)
    if x is None:
        return None
    n = g.tensor(x).dim() - 2
    forms = [
        f"F.max_pool{n}d({{0}}, 2)",
        f"F.max_pool{n}d({{0}}, 2, 1, return_indices=True)[1]",
        f"F.avg_pool{n}d({{0}}, 2)",
        f"F.avg_pool{n}d({{0}}, 2, 1, 1)",
        f"F.adaptive_avg_pool{n}d({{0}}, 1)",
        f"F.adaptive_avg_pool{n}d({{0}}, 2)",
        f"F.adaptive_max_pool{n}d({{0}}, 1)",
    ]
    if n == 2:
        forms += [
            "F.interpolate({0}, scale_factor=2, mode='nearest')",
            "F.interpolate({0}, scale_factor=2, mode='bilinear')",
            "F.unfold({0}, 2)",
            "F.pixel_unshuffle({0}[..., :2, :2], 2)",
            "F.pixel_shuffle({0}.repeat(1, 4, 1, 1), 2)",
            "F.channel_shuffle({0}, 1)",
            "{0}.contiguous(memory_format=torch.channels_last)",
            "F.conv2d({0}, {0}[:1])",
        ]
    return g.r.choice(forms), [x]


def losses(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() == 2)
    if x is None:
        return None
    t = g.tensor(x)
    y = g.pick(lambda u: u.shape == t.shape and u.dtype == t.dtype)
    target = f"torch.arange({t.shape[0]}) % {t.shape[1]}"
    forms = [
        "F.mse_loss({0}, {1})",
        "F.l1_loss({0}, {1}, reduction='sum')",
        "F.smooth_l1_loss({0}, {1}, reduction='none')",
        "F.huber_loss({0}, {1})",
        "F.kl_div({0}, {1}.softmax(-1), reduction='batchmean')",
        f"F.cross_entropy({{0}}, {target})",
        f"F.cross_entropy({{0}}, {target}, label_smoothing=0.1, reduction='none')",
        f"F.nll_loss(F.log_softmax({{0}}, -1), {target})",
        "F.binary_cross_entropy({0}.sigmoid(), {1}.sigmoid())",
        "F.binary_cross_entropy_with_logits({0}, {1}.sigmoid())",
        "F.triplet_margin_loss({0}, {1}, {0} * 2)",
        "F.margin_ranking_loss({0}, {1}, {1}.sign())",
        "F.hinge_embedding_loss({0}, {1}.sign())",
        "F.cosine_embedding_loss({0}, {1}, torch.ones({0}.shape[0]))",
    ]
    return g.r.choice(forms), [x, y]


def recurrent(g):
    x = g.pick(lambda t: t.is_floating_point() and t.dim() == 3 and str(t.dtype) == "torch.float32")
    if x is None:
        return None
    t = g.tensor(x)
    width, hidden = t.shape[-1], 3
    kind, gates = g.r.choice([("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
    w = [g.parameter([gates * hidden, n], t) for n in (width, hidden)]
    b = [g.parameter([gates * hidden], t) for _ in range(2)]
    zero = "torch.zeros(1, {0}.shape[1], 3)"
    start = f"({zero}, {zero})" if kind == "lstm" else zero
    return f"torch.{kind}({{0}}, {start}, [{{1}}, {{2}}, {{3}}, {{4}}], True, 1, 0.0, False, False, False)[0]", [
        x,
        *w,
        *b,
    ]


def random_numbers(g):
    x = g.pick(lambda t: t.is_floating_point())
    if x is None:
        return None
    forms = [
        "F.dropout({0}, 0.5, True)",
        "torch.rand_like({0})",
        "torch.randn({0}.shape) + {0}",
        "torch.bernoulli({0}.sigmoid().nan_to_num(0.5))",
        "torch.randint(0, 4, {0}.shape)",
        "torch.randperm({0}.shape[-1])",
    ]
    return g.r.choice(forms), [x]


def embeddings(g):
    ids = g.pick(lambda t: str(t.dtype) in ("torch.int64", "torch.int32") and 1 <= t.dim() <= 2)
    if ids is None:
        return None
    table = g.parameter([7, g.r.choice([4, 6])], None)
    forms = [
        "F.embedding({0}.abs() % 7, {1})",
        "F.embedding({0}.abs() % 7, {1}, padding_idx=0)",
        "F.embedding_bag({0}.reshape(-1).abs() % 7, {1}, torch.tensor([0, 1], dtype={0}.dtype))",
        "{1}[{0}.abs() % 7]",
    ]
    return g.r.choice(forms), [ids, table]


MAKERS = [
    *(linear, linear, linear, products, products, attention, norms, norms, convolution, pooling, losses),
    *(recurrent, random_numbers, embeddings, running_statistics),
]
