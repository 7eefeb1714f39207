"""What the time of a module depends on besides its graph and its machine."""

from __future__ import annotations

import os

import torch

from tessera.tracing.held import Held

_variables = ("TORCHINDUCTOR_", "TORCH_", "TRITON_", "CUBLAS", "CUDNN_", "NVIDIA_TF32", "CUDA_", "OMP_", "MKL_", "KMP_")


def circumstances(held: Held) -> dict:
    """Settings of the call, torch's flags, and the variables that PyTorch and its libraries read. Plain JSON, so that the engine can
    hold it against that of an earlier run."""
    return {
        "settings": {name: repr(value) for name, value in sorted(held.options.items())},
        "training": held.module.training,
        "flags": {
            "matmul": torch.backends.cuda.matmul.fp32_precision,
            "reduced_sums": [
                torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
                torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
            ],
            "convolution": torch.backends.cudnn.conv.fp32_precision,
            "recurrent": torch.backends.cudnn.rnn.fp32_precision,
            "cudnn": [torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark],
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "attention": [
                torch.backends.cuda.flash_sdp_enabled(),
                torch.backends.cuda.mem_efficient_sdp_enabled(),
                torch.backends.cuda.cudnn_sdp_enabled(),
            ],
        },
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(_variables)},
    }
