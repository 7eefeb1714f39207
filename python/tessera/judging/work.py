"""Whose work a judged module's results are: its own kernels', or PyTorch's and the vendor's libraries'."""

from __future__ import annotations

import re

# What moves, makes or looks at tensors; all other ops of PyTorch compute.
_idle_words = """
empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros zero_ ones
ones_like new_ones full full_like new_full fill_ copy_ clone contiguous to _to_copy detach detach_ alias lift lift_fresh
view _unsafe_view reshape _reshape_alias as_strided expand expand_as permute transpose t numpy_T mT unsqueeze squeeze
select slice narrow split chunk unbind flatten unflatten view_as movedim swapaxes diagonal item is_nonzero
_local_scalar_dense resize_ set_ record_stream is_pinned pin_memory unfold stride size numel is_contiguous
result_type can_cast _has_compatible_shallow_copy_type requires_grad_ resolve_conj resolve_neg
"""
_IDLE = set(_idle_words.split())
_LIBRARY_KERNEL = re.compile(
    r"cublas|cudnn|nvjet|cutlass_80|xmma|\bsm\d\d_x|ampere_|volta_|gemv[NT]|splitKreduce|cusparse|cusolver|cufft"
    r"|at::native|at_cuda_detail|flash_fwd|fmha_cutlass|pytorch_flash",
    re.IGNORECASE,
)
_NAMES = re.compile(r"\b(cublas\w*|cudnn\w*|cusparse\w*|cufft\w*|mkl_\w+|cblas_\w+|dnnl\w*|onednn\w*)\b", re.IGNORECASE)


def work_of(ops: dict[str, int], kernels: dict[str, int], source: str, reference: list[str]) -> dict:
    """{"label": "own", "mixed" or "library", "by_library": [...], "names": [...]}. `library`: every product, convolution and
    attention of the reference is; where it has none, every op of it. `names`: functions of
    vendors' libraries that the source names."""
    called = sorted({name.removeprefix("aten::") for name in ops} - _IDLE)
    called = [name for name in called if not (name.endswith("_") and name.rstrip("_") in _IDLE)]
    foreign = sorted(name[:80] for name in kernels if _LIBRARY_KERNEL.search(name) and not _moves(name))
    by_library = [*called, *foreign]
    names = sorted(set(_NAMES.findall(source)))
    if not by_library:
        label = "own" if not names else "mixed"
    else:
        wanted = _heavy(reference) or set(reference) - _IDLE
        label = "library" if wanted <= _heavy(called) | set(called) or _any_heavy(foreign) else "mixed"
    return {"label": label, "by_library": by_library[:24], "names": names[:24]}


def _moves(kernel: str) -> bool:
    return any(word in kernel for word in ("copy", "Memcpy", "Memset", "FillFunctor"))


_FAMILIES = {
    "product": {"mm", "bmm", "addmm", "baddbmm", "linear", "matmul", "mv", "addmv", "dot", "einsum", "addbmm"},
    "convolution": {
        "convolution",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose2d",
        "conv_transpose3d",
        "_convolution",
    },
    "attention": {"scaled_dot_product_attention"},
    "recurrent": {"lstm", "gru", "rnn_tanh", "rnn_relu"},
}


def _heavy(ops: list[str]) -> set[str]:
    """The families of costly ops among these."""
    return {family for family, names in _FAMILIES.items() if names & set(ops)}


def _any_heavy(kernels: list[str]) -> bool:
    return any(re.search(r"gemm|cublas|cudnn|nvjet|xmma|flash|fmha|conv", k, re.IGNORECASE) for k in kernels)
