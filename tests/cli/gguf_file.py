# SPDX-License-Identifier: BSD-3-Clause
"""Small GGUF files, byte by byte."""

import random
import struct

UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9
F32, Q4_0 = 0, 2
CHAT_TEMPLATE = ("{% for message in messages %}{{ message.role }}: {{ message.content }}\n"
                 "{% endfor %}")


def _text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value):
    if isinstance(value, int):
        return struct.pack("<II", UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _text(value)
    return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_text, value))


def write(path, keys, tensors):
    """`tensors`: name -> (dimensions, innermost first; type; bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        head += _text(key) + _value(value)
    data = b""
    for name, (dims, kind, raw) in tensors.items():
        head += _text(name) + struct.pack("<I", len(dims))
        head += struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def tokens(count):
    """Three of no use, small letters, a space, a line end, a colon, and what they merge to."""
    known = ["t0", "t1", "t2", *"abcdefghijklmnopqrstuvwxyz", "\u0120", "\u010a", ":", "ab"]
    return (known + [f"t{i}" for i in range(len(known), count)])[:count]


def write_model(path, layers=1, width=32, vocabulary=40, kind=Q4_0, **changed_keys):
    """A llama with random weights, Q4_0 or F32."""
    rng = random.Random(1)

    def matrix(rows, columns):
        if kind == F32:
            numbers = (rng.gauss(0, 0.2) for _ in range(rows * columns))
            return ([columns, rows], F32, struct.pack(f"<{rows * columns}f", *numbers))
        blocks = (struct.pack("<e", rng.uniform(0.01, 0.05)) + rng.randbytes(16)
                  for _ in range(rows * columns // 32))
        return ([columns, rows], Q4_0, b"".join(blocks))

    ones = ([width], F32, struct.pack(f"<{width}f", *[1.0] * width))
    tensors = {"token_embd.weight": matrix(vocabulary, width), "output_norm.weight": ones}
    for layer in range(layers):
        block = f"blk.{layer}."
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"{block}{name}.weight"] = ones
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"{block}{name}.weight"] = matrix(width, width)
        for name in ("ffn_gate", "ffn_up"):
            tensors[f"{block}{name}.weight"] = matrix(2 * width, width)
        tensors[f"{block}ffn_down.weight"] = matrix(width, 2 * width)
    keys = {
        "general.architecture": "llama",
        "llama.block_count": layers,
        "llama.embedding_length": width,
        "llama.feed_forward_length": 2 * width,
        "llama.context_length": 64,
        "llama.attention.head_count": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens(vocabulary),
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }
    keys |= {key.replace("__", "."): value for key, value in changed_keys.items()}
    write(path, keys, tensors)
