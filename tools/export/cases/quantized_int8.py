# SPDX-License-Identifier: BSD-3-Clause
"""Weights and activations quantised ahead of time, through PyTorch's PT2E flow."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from executorch.backends.vulkan.quantizer.vulkan_quantizer import (
    VulkanQuantizer,
    get_symmetric_quantization_config,
)
from executorch.backends.xnnpack.quantizer import xnnpack_quantizer
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from tools.export.case import Case, Input, f32, once
from tools.export.cases.quantized import Tie
from tools.export.modules import apply, fill

_TIE = 1e-4


class Converted(nn.Module):
    """A quantised graph, which cannot change between training and evaluation any more."""

    def __init__(self, module: nn.Module, quantizer: Any, *inputs: Input) -> None:
        super().__init__()
        tensors = tuple(x.tensor() for x in inputs)
        graph = torch.export.export(module.eval(), tensors, strict=False).module()
        graph = prepare_pt2e(graph, quantizer)
        graph(*tensors)
        self.converted = convert_pt2e(graph)

    def train(self, mode: bool = True) -> Converted:
        return self

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.converted(*args)


def weights_of_4_bits():
    return VulkanQuantizer().set_global(get_symmetric_quantization_config(weight_bits=4))


def everything_of_8_bits():
    return xnnpack_quantizer.XNNPACKQuantizer().set_global(
        xnnpack_quantizer.get_symmetric_quantization_config(is_per_channel=True)
    )


class _InDouble(torch.fx.Interpreter):
    """The quantised graph in float64; refuses inputs that reach a tie in rounding."""

    def get_attr(self, target, args, kwargs):
        value = super().get_attr(target, args, kwargs)
        return value.double() if value.is_floating_point() else value

    def call_function(self, target, args, kwargs):
        name = str(target)
        if "dequantize_per_channel" in name:
            x, scales, zeros, axis = args[:4]
            shape = [-1 if d == axis else 1 for d in range(x.dim())]
            return (x.double() - zeros.double().reshape(shape)) * scales.double().reshape(shape)
        if "dequantize_per_tensor" in name:
            x, scale, zero = args[:3]
            return (x.double() - zero) * scale
        if "quantize_per_tensor" in name:
            x, scale, zero, low, high = args[:5]
            x = x / scale
            if (((x - x.floor()) - 0.5).abs() < _TIE).any():
                raise Tie("a value of this case is near a tie in rounding")
            return (x.round() + zero).clamp(low, high)
        return super().call_function(target, args, kwargs)


def in_double(module: nn.Module):
    return _InDouble(module.converted).run


class Chain(nn.Module):
    """Linear layers one after the other, with or without a ReLU between them."""

    def __init__(self, *sizes: tuple[int, int], bias: bool = True, relu: bool = False) -> None:
        super().__init__()
        self.count = len(sizes)
        for k, (wide, narrow) in enumerate(sizes):
            self.add_module(f"layer{k}", nn.Linear(wide, narrow, bias=bias))
        fill(self, scale=0.5)
        self.relu = relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for k in range(self.count):
            x = self.get_submodule(f"layer{k}")(x)
            if self.relu and k + 1 < self.count:
                x = torch.relu(x)
        return x


def everything_but_outputs():
    config = xnnpack_quantizer.get_symmetric_quantization_config(is_per_channel=True)
    config = dataclasses.replace(config, output_activation=None)
    return xnnpack_quantizer.XNNPACKQuantizer().set_global(config)


def _case(name, module, quantizer, inputs, operators):
    return Case(
        name=name,
        module=lambda: Converted(module(), quantizer(), *inputs),
        sequences=once(*inputs),
        reference=in_double,
        operators=operators,
    )


CASES = [
    _case(
        name="linear_qcs4w",
        module=lambda: Chain((36, 12)),
        quantizer=weights_of_4_bits,
        inputs=(f32(5, 36),),
        operators={
            "et_vk.prepack.default": 1,
            "et_vk.linear_qcs4w.default": 1,
            "aten.add.Tensor": 1,
        },
    ),
    _case(
        name="linear_qcs4w_odd",
        module=lambda: Chain((10, 7), bias=False),
        quantizer=weights_of_4_bits,
        inputs=(f32(3, 10),),
        operators={"et_vk.linear_qcs4w.default": 1},
    ),
    _case(
        name="linear_q8ta_q8csw",
        module=lambda: Chain((20, 12)),
        quantizer=everything_but_outputs,
        inputs=(f32(5, 20),),
        operators={
            "quantized_decomposed.quantize_per_tensor.default": 1,
            "aten.clone.default": 1,
            "et_vk.linear_q8ta_q8csw.default": 1,
        },
    ),
    _case(
        name="q8ta_linear",
        module=lambda: Chain((16, 12), (12, 8), (8, 4)),
        quantizer=everything_of_8_bits,
        inputs=(f32(5, 16),),
        operators={
            "quantized_decomposed.quantize_per_tensor.default": 1,
            "et_vk.q8ta_linear.default": 3,
            "quantized_decomposed.dequantize_per_tensor.default": 1,
        },
    ),
    _case(
        name="q8ta_linear_relu",
        module=lambda: Chain((16, 12), (12, 8), relu=True),
        quantizer=everything_of_8_bits,
        inputs=(f32(4, 16),),
        operators={
            "quantized_decomposed.quantize_per_tensor.default": 1,
            "et_vk.q8ta_linear.default": 2,
            "quantized_decomposed.dequantize_per_tensor.default": 1,
        },
    ),
    _case(
        name="q8ta_linear_gemv",
        module=lambda: Chain((16, 12), (12, 8), bias=False),
        quantizer=everything_of_8_bits,
        inputs=(f32(1, 16),),
        operators={
            "quantized_decomposed.quantize_per_tensor.default": 1,
            "et_vk.q8ta_linear_gemv.default": 2,
            "quantized_decomposed.dequantize_per_tensor.default": 1,
        },
    ),
    _case(
        name="q8ta_add",
        module=apply(lambda x, y: (x + y) + x),
        quantizer=everything_of_8_bits,
        inputs=(f32(4, 8), f32(4, 8, slot=1)),
        operators={
            "quantized_decomposed.quantize_per_tensor.default": 2,
            "et_vk.q8ta_add.default": 2,
            "quantized_decomposed.dequantize_per_tensor.default": 1,
        },
    ),
    _case(
        name="q8ta_add_relu",
        # 35 bytes: the last word is not full.
        module=apply(lambda x, y: torch.relu(x + y)),
        quantizer=everything_of_8_bits,
        inputs=(f32(5, 7), f32(5, 7, slot=1)),
        operators={
            "quantized_decomposed.quantize_per_tensor.default": 2,
            "et_vk.q8ta_add.default": 1,
            "quantized_decomposed.dequantize_per_tensor.default": 1,
        },
    ),
]
