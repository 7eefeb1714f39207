"""What the `breadth` suite measures: 24 tasks of KernelBench and 8 layers of libraries. The list is fixed: a case that does
badly is not exchanged for another.

Tasks. KernelBench at the commit below has 250 tasks on levels 1 to 3. Dropped are those whose answer does not depend on
their inputs, or hardly so, or which return their input (`DROPPED`); 223 remain. Of each level's remaining numbers, in
ascending order, every n-th is taken, beginning with the n-th, where n is their count divided by how many the level gives,
rounded down: n = 14 of 87, 8 of 91, 6 of 45. `every_nth` is that rule; a test holds `TASKS` to it. The files are read
from a folder that the user gives (kernelbench.py).

Layers. Two decoders, two encoders, two of vision, two of diffusion, at the sizes of models that are in use, in bf16
(layers.py).

Products. `products` says whether a case is one of linear layers, matrix products or attention without a convolution, by the
functions of torch that its forward calls (`of_products`). The suite compares that with what it sees.
"""

from __future__ import annotations

from dataclasses import dataclass

KERNELBENCH_COMMIT = "423217d"
SIZES = {1: 100, 2: 100, 3: 50}
CHOSEN = {1: 6, 2: 11, 3: 7}
DROPPED = {
    1: {19, 20, 23, 31, 32, 37, 39, 90, 94, 95, 96, 98, 100},
    2: {9, 23, 36, 38, 65, 66, 80, 83, 93},
    3: {3, 7, 11, 12, 18},
}


def clean(level: int) -> list[int]:
    """The numbers of a level's tasks that are not dropped, ascending."""
    return [n for n in range(1, SIZES[level] + 1) if n not in DROPPED[level]]


def every_nth(level: int) -> list[int]:
    """The numbers of a level's tasks that the suite takes."""
    numbers = clean(level)
    n = len(numbers) // CHOSEN[level]
    return numbers[n - 1 :: n][: CHOSEN[level]]


@dataclass(frozen=True)
class Task:
    """A file of KernelBench, in fp32."""

    level: int
    number: int
    what: str
    digest: str  # the first twelve digits of the file's SHA-256 at KERNELBENCH_COMMIT
    products: bool

    @property
    def name(self) -> str:
        return f"L{self.level}-{self.number}"


@dataclass(frozen=True)
class Layer:
    """A layer of a library, in bf16; layers.py has a function of the same name with _ for -."""

    name: str
    what: str
    products: bool


TASKS = (
    Task(1, 14, "product of upper triangular matrices", "b66158968757", True),
    Task(1, 33, "batch norm", "0b7f5ca58d6e", False),
    Task(1, 49, "maximum over a dimension", "12982f0f62a7", False),
    Task(1, 63, "convolution 2D", "18b1d4ea7b3a", False),
    Task(1, 77, "transposed convolution 3D, strided, dilated", "a16f0026c224", False),
    Task(1, 92, "exclusive cumulative sum", "ec1551c19613", False),
    Task(2, 8, "convolution 3D, division, maximum, pooling, sum", "80e0126cbb0f", False),
    Task(2, 17, "convolution 2D, instance norm, division", "bf60129922d4", False),
    Task(2, 26, "transposed convolution 3D, addition, hardswish", "807660889bae", False),
    Task(2, 34, "transposed convolution 3D, layer norm, GELU, scaling", "81095e0048e5", False),
    Task(2, 44, "transposed convolution 2D, scaling, two poolings", "8b08cbe30716", False),
    Task(2, 52, "convolution 2D, activation, batch norm", "e9b0070822d1", False),
    Task(2, 60, "transposed convolution 3D, swish, group norm, hardswish", "b5f0476a56ce", False),
    Task(2, 70, "product, sigmoid, scaling, residual", "a1544425f964", True),
    Task(2, 78, "transposed convolution 3D, two maxima, sum", "72724f4f417c", False),
    Task(2, 88, "product, group norm, swish twice", "eda8a47c825e", True),
    Task(2, 97, "product, batch norm, bias, division, swish", "49ed9c680b17", True),
    Task(3, 8, "basic block of a ResNet", "8e1ae06aca51", False),
    Task(3, 16, "DenseNet201", "576b877998f1", False),
    Task(3, 23, "EfficientNetB1", "c71964547b24", False),
    Task(3, 29, "Swin MLP", "7ad16631ae63", False),
    Task(3, 35, "LSTM with random initial states", "6bd5d8260dbb", True),
    Task(3, 41, "bidirectional GRU", "617286deb737", False),
    Task(3, 47, "NetVLAD", "c6e7431519d6", True),
)
LAYERS = (
    Layer("qwen3-decoder", "transformers, decoder of Qwen3-8B, 1x2048x4096", True),
    Layer("gpt2-block", "transformers, decoder of GPT-2 medium, 8x1024x1024", True),
    Layer("roberta-layer", "transformers, encoder of RoBERTa large, 32x512x1024", True),
    Layer("whisper-encoder", "transformers, encoder of Whisper large, 8x1500x1280", True),
    Layer("vit-block", "timm, block of ViT-L/16, 64x197x1024", True),
    Layer("convnext-block", "timm, third stage of ConvNeXt-B, 64x512x14x14", False),
    Layer("sdxl-transformer", "diffusers, block of SDXL's U-Net with cross attention, 2x1024x1280", True),
    Layer("sdxl-resnet", "diffusers, residual block of SDXL's U-Net, 2x640x64x64", False),
)
CASES = {case.name: case for case in (*TASKS, *LAYERS)}

_PRODUCT = {
    "linear",
    "matmul",
    "__matmul__",
    "__rmatmul__",
    "mm",
    "bmm",
    "mv",
    "addmm",
    "baddbmm",
    "einsum",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
}


def of_products(functions: set[str]) -> bool:
    """Of the names of torch's functions that a forward calls: at least one product, and no convolution."""
    return bool(functions & _PRODUCT) and not any(f.startswith("conv") for f in functions)
