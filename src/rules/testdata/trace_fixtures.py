"""Traces the example blocks in bf16 to the graphs that the discovery tests read: `python trace_fixtures.py`, from the
repository's root with python/ on PYTHONPATH. Shapes and ops matter, values do not."""

import importlib.util
import json
from pathlib import Path

import torch
from tessera.tracing.tracer import trace

CASES = {
    "minigpt": ("minigpt", "Model"),
    "llama": ("llama_block", "LlamaBlock"),
    "llama_written": ("llama_block", "LlamaBlockWritten"),
}


def load(name):
    spec = importlib.util.spec_from_file_location(name, Path("examples") / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    for fixture, (file, name) in CASES.items():
        source = load(file)
        model = getattr(source, name)(*source.get_init_inputs())
        graph = trace(model.eval(), tuple(source.get_inputs()), precision="bf16")
        text = json.dumps(graph, separators=(",", ":"))
        (Path(__file__).parent / f"{fixture}.json").write_text(text + "\n")
        print(fixture, len(text))


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
