"""generate() of a language model of transformers with a static cache, which every call writes and counts on."""

import pytest
import torch
from core import BINARY
from tessera import backend
from transformers import LlamaConfig, LlamaForCausalLM

NEW = 8


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("TESSERA_HOME", str(tmp_path))
    monkeypatch.setenv("TESSERA_BINARY", str(BINARY))
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")


def test_generate_behind_torch_compile():
    torch.compiler.reset()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 128, (1, 24))

    def generated() -> list[int]:
        made = model.generate(
            ids, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, cache_implementation="static", pad_token_id=0
        )
        return made[0].tolist()

    wanted = generated()
    model.forward = torch.compile(
        model.forward,
        backend=backend.tessera,
        options={"seconds": 60, "effort": "quick", "place_all": True, "progress": False},
    )
    assert generated() == generated() == wanted
    prefill, token = backend.status(model.forward)
    assert (prefill["runner"], token["runner"]) == ("kernels", "kernels"), (prefill["reason"], token["reason"])
    assert token["status"]["active"] and token["status"]["served"] == 2 * (NEW - 1), token["status"]
