#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the files in this folder with ExecuTorch's own exporter: one for each feature of the
container formats that a Vulkan-lowered model does not show.

Usage: python make.py, with torch and executorch of tools/requirements-test.txt installed.
"""

from pathlib import Path

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    serialize_from_bundled_program_to_flatbuffer)
from executorch.exir import (EdgeCompileConfig, ExecutorchBackendConfig,
                             to_edge_transform_and_lower)
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

HERE = Path(__file__).parent


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.linear(x)


class Counter(torch.nn.Module):
    """State that starts from bytes in the file."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.arange(4, dtype=torch.float32))

    def forward(self, x):
        self.total.add_(x)
        return self.total + 1


class Branch(torch.nn.Module):
    """Jumps and moves."""

    def forward(self, flag, x):
        return torch.cond(flag, lambda x: x + 1, lambda x: x * 2, (x,))


def lower(module, inputs, partitioners=(), dynamic_shapes=None, **options):
    program = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes, strict=True)
    return to_edge_transform_and_lower(program, partitioner=list(partitioners), **options)


def save(name, data):
    (HERE / name).write_bytes(data)
    print(f"{name}: {len(data)} bytes")


def main():
    torch.manual_seed(0)
    pair = (torch.randn(2, 3), torch.randn(2, 3))
    row = (torch.randn(2, 8),)
    vulkan = VulkanPartitioner({})

    # A dynamic size, and every kind of constant method.
    length = torch.export.Dim("length", max=16)
    added = lower(Add(), pair, [vulkan],
                  dynamic_shapes={"x": {0: length}, "y": {0: length}},
                  constant_methods={"an_int": 7, "a_double": 0.25, "a_bool": True,
                                    "a_string": "h\u00e9llo", "ints": [1, 2, 3]})
    save("vulkan_add.pte", added.to_executorch().buffer)
    # The delegate inside of the flatbuffer: no segments, no extended header.
    inlined = lower(Add(), pair, [vulkan]).to_executorch(
        ExecutorchBackendConfig(extract_delegate_segments=False))
    save("inline_delegate.pte", inlined.buffer)
    save("xnnpack_add.pte", lower(Add(), pair, [XnnpackPartitioner()]).to_executorch().buffer)

    # Nothing delegated: constants in a segment, stack traces, state, control flow.
    save("portable_linear.pte", lower(Linear(), row).to_executorch(
        ExecutorchBackendConfig(emit_stacktrace=True)).buffer)
    save("portable_state.pte", lower(Counter(), (torch.ones(4),)).to_executorch(
        ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["total"])],
                                emit_mutable_buffer_names=True)).buffer)
    save("portable_branch.pte", lower(
        Branch(), (torch.tensor(True), torch.ones(3)),
        compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch().buffer)

    # Weights outside of the program.
    external = lower(Linear(), row).to_executorch(ExecutorchBackendConfig(external_constants=True))
    save("external_linear.pte", external.buffer)
    for name, data in external._tensor_data.items():
        save(f"external_linear.{name.strip('_')}.ptd", bytes(data))

    # A program with inputs and expected outputs.
    plain = lower(Add(), pair, [vulkan]).to_executorch()
    suite = MethodTestSuite(method_name="forward", test_cases=[
        MethodTestCase(inputs=pair, expected_outputs=(pair[0] + pair[1],)),
        MethodTestCase(inputs=pair[::-1], expected_outputs=(pair[0] + pair[1],))])
    save("bundled_add.bpte", serialize_from_bundled_program_to_flatbuffer(
        BundledProgram(plain, [suite])))


if __name__ == "__main__":
    main()
