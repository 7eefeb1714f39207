"""The transformer blocks of the `blocks` suite: case name to module and inputs."""

import importlib.util
import re
from pathlib import Path

import torch
from torch import nn

examples = Path(__file__).resolve().parent.parent.parent / "examples"


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, examples / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make(case: str, device: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    if case == "minigpt":  # KernelBench level 3, problem 44
        example = load("minigpt")
        module = example.Model(768, 8, 1024)
        shape = (128, 512, 768)
    else:
        match = re.fullmatch(r"llama-(\d+)x(\d+)(-written)?", case)
        if match is None:
            raise ValueError(f"no such case: {case}")
        example = load("llama_block")
        module = (example.LlamaBlockWritten if match[3] else example.LlamaBlock)()
        shape = (int(match[1]), int(match[2]), 4096)
    with torch.device(device):
        x = torch.randn(shape)
    return module.to(device), (x,)
