# SPDX-License-Identifier: BSD-3-Clause
"""Our reading of GGUF files against the format's own Python package."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize

from executorch_files import program, run

TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K",
         "Q5_K", "Q6_K"]

# Where the halves that scale a block stand; everything else may be any bits.
HALVES = {"F16": range(0, 2, 2), "BF16": range(0, 2, 2), "Q4_0": [0], "Q4_1": [0, 2],
          "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def random_blocks(rng: np.random.Generator, name: str, rows: int, columns: int) -> np.ndarray:
    if name == "F32":
        return rng.standard_normal((rows, columns)).astype(np.float32)
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    for at in HALVES[name]:
        halves = rng.standard_normal(len(blocks)).astype(np.float16)
        if name == "BF16":
            halves = (rng.standard_normal(len(blocks)).astype(np.float32).view(np.uint32)
                      >> 16).astype(np.uint16)
        blocks[:, at:at + 2] = halves.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, columns // elements * size)


def write(path, tensors: dict[str, tuple[str, np.ndarray]]) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "\u2581b", "\N{GRINNING FACE}"])
    writer.add_bool("llama.yes", True)
    for name, (kind, blocks) in tensors.items():
        raw = blocks.view(np.float16) if kind == "F16" else blocks
        writer.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ours(path, folder) -> np.ndarray:
    done = run(program("tests/gguf_floats"), path, folder / "floats")
    assert done.returncode == 0, done.stderr
    return np.fromfile(folder / "floats", dtype=np.float32)


@pytest.mark.parametrize("kind", TYPES)
def test_weights_are_the_numbers_that_the_format_says(kind, tmp_path):
    rng = np.random.default_rng(TYPES.index(kind))
    blocks = random_blocks(rng, kind, 7, 512)
    write(tmp_path / "x.gguf", {"first": (kind, blocks), "second": (kind, blocks[:3])})
    expected = dequantize(blocks, gguf.GGMLQuantizationType[kind]).astype(np.float32).ravel()
    expected = np.concatenate([expected, expected[:3 * 512]])
    found = ours(tmp_path / "x.gguf", tmp_path)
    assert found.shape == expected.shape
    assert np.isfinite(expected).all() and np.abs(expected).max() > 0.5
    # One rounding apart where products are formed in another order.
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=2e-6 * np.abs(expected).max())


def test_quantised_by_the_package_and_read_by_us(tmp_path):
    rng = np.random.default_rng(99)
    values = rng.standard_normal((5, 256)).astype(np.float32)
    kinds = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16", "BF16"]
    tensors = {kind: (kind, gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind]))
               for kind in kinds}
    write(tmp_path / "x.gguf", tensors)
    found = ours(tmp_path / "x.gguf", tmp_path).reshape(len(kinds), 5, 256)
    for kind, ours_of_kind in zip(kinds, found):
        worst = np.abs(ours_of_kind - values).max()
        assert worst < {"Q8_0": 0.02, "F16": 0.002, "BF16": 0.02}.get(kind, 0.5), kind
