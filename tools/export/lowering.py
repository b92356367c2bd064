# SPDX-License-Identifier: BSD-3-Clause
"""From a case to the bytes of its .pte file."""

from __future__ import annotations

import functools
import logging

import torch
from executorch.backends.vulkan import patterns
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower

from tools.export.case import Case


@functools.cache
def prepare_process() -> None:
    """One thread a worker, quiet logs, and fusion patterns traced once instead of per export.

    executorch 1.4.1 means to cache the traced rope patterns but registers the uncached functions,
    which costs five extra exports per partition: four fifths of the time of a small model.
    """
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    for entry in patterns.fusable_patterns.values():
        if entry.get_graphs_fn is not None:
            entry.get_graphs_fn = functools.cache(entry.get_graphs_fn)


def lower(case: Case) -> bytes:
    prepare_process()
    dims: dict[str, torch.export.Dim] = {}
    dynamic = None
    if case.dynamic is not None:
        for per_input in case.dynamic:
            for dim in per_input.values():
                dims.setdefault(dim.name, torch.export.Dim(dim.name, min=dim.low, max=dim.high))
        dynamic = tuple(
            {axis: dims[dim.name] for axis, dim in per_input.items()}
            for per_input in case.dynamic
        )
    module = case.module().eval()
    inputs = tuple(x.tensor() for x in case.example)
    if dynamic is not None and not _takes_single_inputs(module):
        dynamic = (dynamic,)  # forward(*args) is one argument to the exporter
    program = torch.export.export(module, inputs, dynamic_shapes=dynamic, strict=False)
    partitioner = VulkanPartitioner(dict(case.options))
    return bytes(
        to_edge_transform_and_lower(program, partitioner=[partitioner]).to_executorch().buffer
    )


def _takes_single_inputs(module: torch.nn.Module) -> bool:
    code = type(module).forward.__code__
    takes_varargs = bool(code.co_flags & 0x04)
    return not takes_varargs
