# SPDX-License-Identifier: BSD-3-Clause
"""4-bit weights of linear layers and embeddings, with and without 8-bit activations."""

from __future__ import annotations

import copy
import dataclasses

import torch
from torch import nn
from torchao.quantization.granularity import PerGroup
from torchao.quantization.quant_api import (
    Int8DynamicActivationIntxWeightConfig,
    IntxWeightOnlyConfig,
    quantize_,
)

from executorch.examples.models.llama.source_transformation.quantize import (
    EmbeddingQuantHandler,
    QuantizedGroupEmbedding,
)
from tools.export.case import Case, Dim, Input, Step, f32, i32, i64, live, once, values
from tools.export.modules import fill

# A value this near to the middle between two integers may be rounded to either in float32.
_TIE = 1e-4


def weights_of_4_bits(module: nn.Module, group: int, activations: bool = False) -> nn.Module:
    """Symmetric groups along K; with `activations`, each row is quantised to 8 bits as it runs."""
    if activations:
        config = Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=PerGroup(group)
        )
    else:
        config = IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(group))
    quantize_(module, config)
    return module


class ExactLinear(nn.Module):
    """A quantised nn.Linear evaluated in float64 from its integers and scales."""

    def __init__(self, layer: nn.Linear, ties: bool) -> None:
        super().__init__()
        self.ties = ties
        quantised = layer.weight
        scale = quantised.scale.double()
        grouped = quantised.qdata.double().unflatten(1, (scale.size(1), -1))
        self.weight = (grouped * scale.unsqueeze(-1)).flatten(1)
        self.bias = None if layer.bias is None else layer.bias.double()
        self.quantise_rows = quantised.activation_quantization is not None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.double()
        if self.quantise_rows:
            x = _rows_of_8_bits(x, self.ties)
        return nn.functional.linear(x, self.weight, self.bias)


def _rows_of_8_bits(x: torch.Tensor, ties: bool = False) -> torch.Tensor:
    low = x.amin(-1, keepdim=True).clamp(max=0)
    high = x.amax(-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero = (-128 - _rounded(low / scale, ties)).clamp(-128, 127)
    return ((_rounded(x / scale, ties) + zero).clamp(-128, 127) - zero) * scale


class Tie(Exception):
    """Two correct kernels may round a value of this input to different integers."""


def _rounded(x: torch.Tensor, ties: bool) -> torch.Tensor:
    to_tie = ((x - x.floor()) - 0.5).abs().min()
    if to_tie < _TIE and not ties:
        raise Tie(f"an input of this case is {to_tie:g} away from a tie in rounding")
    return x.round()


def without_ties(sequences: dict[str, tuple[Step, ...]]) -> dict[str, tuple[Step, ...]]:
    """Redraws every input until none of its values is near a tie."""

    def redrawn(x: Input) -> Input:
        try:
            _rows_of_8_bits(x.tensor().double())
        except Tie:
            return redrawn(dataclasses.replace(x, slot=x.slot + 100))
        return x

    return {
        name: tuple(tuple(map(redrawn, step)) for step in steps)
        for name, steps in sequences.items()
    }


class ExactEmbedding(nn.Module):
    def __init__(self, table: QuantizedGroupEmbedding) -> None:
        super().__init__()
        codes = torch.stack((table.weight >> 4, table.weight & 15), -1).flatten(1).double() - 8
        scales = table.scales.double().reshape(codes.size(0), -1, 1)
        self.rows = (codes.unflatten(1, (scales.size(1), -1)) * scales).flatten(1)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.rows[indices.long()]


def dequantised(module: nn.Module, ties: bool = False) -> nn.Module:
    """The module with every quantised part replaced by its exact form, in float64.

    With `ties`, activations near the middle between two integers are let pass.
    """
    module = copy.deepcopy(module)
    for name, part in list(module.named_modules()):
        exact = None
        if isinstance(part, nn.Linear) and hasattr(part.weight, "qdata"):
            exact = ExactLinear(part, ties)
        elif isinstance(part, QuantizedGroupEmbedding):
            exact = ExactEmbedding(part)
        if exact is not None:
            parent, _, last = name.rpartition(".")
            setattr(module.get_submodule(parent), last, exact)
    return module.double()


class Quantised(nn.Module):
    """Layers (K, N, group, bias) of 4-bit weights; one input for all, or one for each."""

    def __init__(self, *sizes: tuple[int, int, int, bool], activations: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(k, n, bias=bias) for k, n, _, bias in sizes)
        fill(self, scale=0.5)
        for layer, (_, _, group, _) in zip(self.layers, sizes):
            weights_of_4_bits(nn.Sequential(layer), group, activations)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        each = inputs if len(inputs) > 1 else inputs * len(self.layers)
        return tuple(layer(x) for layer, x in zip(self.layers, each))


class Table(nn.Module):
    """An embedding of 4 bits, groups along the row."""

    def __init__(self, rows: int, width: int, group: int) -> None:
        super().__init__()
        plain = nn.ModuleDict({"tok_embeddings": fill(nn.Embedding(rows, width), scale=1)})
        quantised = EmbeddingQuantHandler(
            plain, bitwidth=4, group_size=group, packed=True
        ).quantized_model()
        self.table = quantised["tok_embeddings"]

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.table(indices)


M = (5, 1, 33, 1, 130, 2, 4, 64)  # M of a decoder, of tiles, and past two tiles of 64

CASES = [
    Case(
        name="linear_4w_live",
        module=lambda: Quantised((128, 40, 32, False), (128, 24, 64, True), (128, 8, 128, False)),
        sequences=live(lambda n: (f32(n, 128, low=-1, high=1),), M),
        dynamic=({0: Dim("s", 130)},),
        reference=dequantised,
        operators={"et_vk.linear_q4gsw.default": 3},
    ),
    Case(
        name="linear_4w_sizes",
        # K that no 8 divides, small groups, one group. The exporter takes N in multiples of 4 only.
        module=lambda: Quantised(
            (36, 20, 36, True), (20, 12, 4, False), (12, 4, 12, True), (64, 36, 32, True)
        ),
        sequences=once(f32(3, 36), f32(1, 20), f32(5, 12), f32(1, 2, 64)),
        reference=dequantised,
        operators={"et_vk.linear_q4gsw.default": 4, "aten.view_copy.default": 1},
    ),
    Case(
        name="linear_4w_one_row",
        module=lambda: Quantised((256, 72, 64, True), (64, 256, 32, False)),
        sequences=once(f32(1, 1, 256, low=-1, high=1), f32(1, 1, 64)),
        reference=dequantised,
        operators={"et_vk.linear_q4gsw.default": 2, "aten.view_copy.default": 2},
    ),
    Case(
        name="linear_4w_half",
        module=lambda: Quantised((128, 24, 32, False), (128, 16, 64, True)),
        sequences=live(lambda n: (f32(n, 128, low=-1, high=1),), (5, 1, 33, 2)),
        dynamic=({0: Dim("s", 33)},),
        reference=dequantised,
        options={"force_fp16": True},
        atol=5e-3,
        rtol=5e-3,
        reason="inputs, scales and outputs are half precision inside the graph",
        operators={"et_vk.linear_q4gsw.default": 2},
    ),
    Case(
        name="linear_8da4w_live",
        module=lambda: Quantised((64, 24, 32, False), activations=True),
        sequences=without_ties(
            live(lambda n: (f32(n, 64, low=-1, high=1),), (5, 1, 8, 1, 13, 2, 3))
        ),
        dynamic=({0: Dim("s", 13)},),
        reference=dequantised,
        operators={
            "torchao.choose_qparams_affine.default": 1,
            "et_vk.linear_dq8ca_q4gsw.default": 1,
        },
    ),
    Case(
        name="linear_8da4w_bias_rank3",
        module=lambda: Quantised((36, 12, 36, True), (64, 16, 64, False), activations=True),
        sequences=without_ties(once(f32(1, 3, 36), f32(1, 2, 64, slot=1))),
        reference=dequantised,
        operators={
            "torchao.choose_qparams_affine.default": 2,
            "et_vk.linear_dq8ca_q4gsw.default": 2,
        },
    ),
    Case(
        name="linear_8da4w_rows",
        # Rows of one sign, a row of zeros, one large value among small ones, tiny values.
        module=lambda: Quantised((8, 8, 8, False), activations=True),
        sequences=once(
            values(
                torch.float32,
                [0.3, 1.1, 2.3, 0.7, 0.9, 3.1, 1.9, 0.1]
                + [-0.3, -1.1, -2.3, -0.7, -0.9, -3.1, -1.9, -0.1]
                + [0.0] * 8
                + [0.01, -0.02, 97.3, 0.013, -0.7, 0.3, -0.11, 0.2]
                + [0.0011, -0.0007, 0.0003, 0.0017, -0.0012, 0.0005, -0.0002, 0.0009],
                5,
                8,
            )
        ),
        reference=dequantised,
        operators={
            "torchao.choose_qparams_affine.default": 1,
            "et_vk.linear_dq8ca_q4gsw.default": 1,
        },
    ),
    Case(
        name="embedding_4w_live",
        module=lambda: Table(53, 64, 32),
        sequences=live(lambda n: (i64(1, n, low=0, high=52),)),
        dynamic=({1: Dim("s", 13)},),
        reference=dequantised,
        operators={"et_vk.embedding_q4gsw.default": 1},
    ),
    Case(
        name="embedding_4w_int32",
        module=lambda: Table(17, 96, 32),
        sequences=once(i32(2, 5, low=0, high=16)),
        reference=dequantised,
        operators={"et_vk.embedding_q4gsw.default": 1},
    ),
    Case(
        name="embedding_4w_half",
        module=lambda: Table(29, 64, 32),
        sequences=once(i64(1, 7, low=0, high=28)),
        reference=dequantised,
        options={"force_fp16": True},
        atol=2e-3,
        rtol=2e-3,
        reason="scales and outputs are half precision inside the graph",
        operators={"et_vk.embedding_q4gsw.default": 1},
    ),
]
