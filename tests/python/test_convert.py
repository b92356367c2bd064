# SPDX-License-Identifier: BSD-3-Clause
"""Converted models in ExecuTorch's own runtime, tokenizers in Hugging Face's own library."""

from __future__ import annotations

import json
import sys

import gguf
import numpy as np
import pytest
from executorch.runtime import Runtime, Verification
from tokenizers import Tokenizer

from executorch_files import ROOT, THEIRS, Container, decode, graph_flatbuffer, program, run

sys.path.insert(0, str(ROOT / "tests/cli"))
import gguf_file  # noqa: E402


def convert(source, target, *options) -> Container:
    done = run(program("ptero"), "convert", source, "-o", target, *options)
    assert done.returncode == 0, done.stderr
    return Container(target.read_bytes())


def named(container: Container, key: str) -> bytes:
    decoded = decode(THEIRS["program"], container.flatbuffer)
    segments = {entry["key"]: entry["segment_index"] for entry in decoded["named_data"]}
    return container.segment(decoded["segments"][segments[key]])


@pytest.mark.parametrize("weights", ["q4", "f16", "f32"])
def test_the_official_runtime_takes_the_program(tmp_path, weights):
    gguf_file.write_model(tmp_path / "x.gguf", layers=2)
    container = convert(tmp_path / "x.gguf", tmp_path / "x.pte", "--weights", weights)
    loaded = Runtime.get().load_program(tmp_path / "x.pte",
                                        verification=Verification.InternalConsistency)
    assert {"forward", "get_vocab_size", "use_kv_cache"} <= set(loaded.method_names)
    for method, values in {"get_max_seq_len": [64], "get_max_context_len": [64],
                           "get_n_layers": [2], "get_vocab_size": [40], "get_eos_ids": [2],
                           "use_kv_cache": [True], "use_sdpa_with_kv_cache": [True],
                           "enable_dynamic_shape": [True], "enable_f16_gemm": [True]}.items():
        assert loaded.load_method(method).execute([]) == values
    decoded = decode(THEIRS["program"], container.flatbuffer)
    [(backend, blob, _)] = container.delegates(decoded)
    assert backend == "VulkanBackend"
    graph = decode(THEIRS["vkgraph"], graph_flatbuffer(blob))
    assert len(graph["input_ids"]) == 2 and len(graph["output_ids"]) == 1


# A vocabulary whose merges tell the ways to split text apart.
BYTES = sorted({*range(33, 127), *range(161, 173), *range(174, 256)})
ALPHABET = [chr(b) for b in BYTES] + [chr(256 + i) for i in range(256 - len(BYTES))]
MERGES = ["1 2", "12 3", "h e", "l l", "he ll", "hell o", "\u0120 w", "' s", "\u0120 \u0120"]


TEXTS = ["hello world", "1234 12", "it's  hello\n\n  w", "he\u0301llo 123456", "<|end|>hello<|end|>"]


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "llama-bpe", "qwen2", "default"])
def test_a_byte_level_tokenizer_loads_and_gives_texts_back(tmp_path, pre):
    tokens = ALPHABET + [merge.replace(" ", "") for merge in MERGES] + ["<|end|>"]
    gguf_file.write_model(tmp_path / "x.gguf", vocabulary=len(tokens), **{
        "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": MERGES})
    container = convert(tmp_path / "x.gguf", tmp_path / "x.pte")
    tokenizer = Tokenizer.from_str(named(container, "ptero.tokenizer.json").decode())
    for text in TEXTS:
        back = tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False)
        composed = {"he\u0301llo 123456": "h\u00e9llo 123456"}.get(text, text)
        assert back == (composed if pre == "qwen2" else text)
    pieces = tokenizer.encode("123 hello").tokens
    if pre in ("smollm", "qwen2"):
        assert pieces[:3] == ["1", "2", "3"]
    else:
        assert pieces[0] == "123"
    config = json.loads(named(container, "ptero.tokenizer_config.json"))
    assert config["eos_token"] == tokens[2]
    assert named(container, "ptero.chat_template.jinja") == gguf_file.CHAT_TEMPLATE.encode()


def test_a_sentencepiece_tokenizer_merges_by_score(tmp_path):
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    pieces = {"\u2581": -1.0, "a": -2.0, "b": -3.0, "c": -4.0, "ab": -0.5, "bc": -0.1,
              "\u2581a": -0.7, "abc": -0.8}
    tokens += pieces
    scores = [0.0] * 259 + list(pieces.values())
    kinds = [2, 3, 3] + [6] * 256 + [1] * len(pieces)
    writer = gguf.GGUFWriter(tmp_path / "t.gguf", "llama")
    keys = {"block_count": 1, "embedding_length": 32, "feed_forward_length": 64,
            "context_length": 64, "attention.head_count": 2}
    for key, value in keys.items():
        writer.add_uint32(f"llama.{key}", value)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    rng = np.random.default_rng(0)
    shapes = {"token_embd": (len(tokens), 32), "blk.0.attn_q": (32, 32),
              "blk.0.attn_k": (32, 32), "blk.0.attn_v": (32, 32),
              "blk.0.attn_output": (32, 32), "blk.0.ffn_gate": (64, 32),
              "blk.0.ffn_up": (64, 32), "blk.0.ffn_down": (32, 64), "output_norm": (32,),
              "blk.0.attn_norm": (32,), "blk.0.ffn_norm": (32,)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.standard_normal(shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    container = convert(tmp_path / "t.gguf", tmp_path / "t.pte")
    tokenizer = Tokenizer.from_str(named(container, "ptero.tokenizer.json").decode())
    # "bc" is first, then "\u2581a"; left to right it would be "ab" and "c".
    assert tokenizer.encode("abc").tokens == ["<s>", "\u2581a", "bc"]
    assert tokenizer.encode("\u00e9").tokens == ["<s>", "\u2581", "<0xC3>", "<0xA9>"]
    for text in ["abc", "a b", "\u00e9 b", "  a\n"]:
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
