# SPDX-License-Identifier: BSD-3-Clause
"""Reads an exported file back with the exporter's own classes."""

from __future__ import annotations

import collections
import dataclasses

from executorch.backends.vulkan.serialization.vulkan_graph_schema import VkGraph
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import (
    VulkanDelegateHeader,
    flatbuffer_to_vk_graph,
)
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.schema import DelegateCall, KernelCall


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What the `forward` method of a file does, in order of first use."""

    delegates: int
    operators: dict[str, int]
    host_operators: dict[str, int]
    graphs: list[VkGraph]


def inspect(data: bytes) -> Inspection:
    program = deserialize_pte_binary(data).program
    (plan,) = [plan for plan in program.execution_plan if plan.name == "forward"]
    graphs: list[VkGraph] = []
    host: collections.Counter[str] = collections.Counter()
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if isinstance(call, DelegateCall):
                delegate = plan.delegates[call.delegate_index]
                if delegate.id != "VulkanBackend":
                    raise ValueError(f"delegate of an unexpected backend ({delegate.id})")
                blob = program.backend_delegate_data[delegate.processed.index].data
                graphs.append(_graph(bytes(blob)))
            elif isinstance(call, KernelCall):
                operator = plan.operators[call.op_index]
                host[f"{operator.name}.{operator.overload}".rstrip(".")] += 1
            else:
                host[type(call).__name__] += 1
    operators = collections.Counter(call.name for graph in graphs for call in graph.chain)
    return Inspection(len(graphs), dict(operators), dict(host), graphs)


def _graph(blob: bytes) -> VkGraph:
    header = VulkanDelegateHeader.from_bytes(blob[: VulkanDelegateHeader.EXPECTED_LENGTH])
    begin = header.flatbuffer_offset
    return flatbuffer_to_vk_graph(blob[begin : begin + header.flatbuffer_size])
