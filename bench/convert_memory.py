#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How much memory `ptero convert` takes for a GGUF file of about 4 GB with many types of weights.

The file is made in a temporary folder and removed again. Linux only. Anonymous memory is what
counts: pages of the mapped file come and go with what else the machine needs. It is looked at a
hundred times a second, and cannot pass the limit unseen: the program runs with so much room for
data and no more.
"""

import argparse
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT = 512 << 20
UINT32, FLOAT32, STRING = 4, 6, 8

# Number in the file, elements and bytes of a block, where its half-precision factors are.
TYPES = {
    "F32": (0, 1, 4, None), "F16": (1, 1, 2, None), "BF16": (30, 1, 2, None),
    "Q4_0": (2, 32, 18, (0,)), "Q4_1": (3, 32, 20, (0, 2)), "Q5_0": (6, 32, 22, (0,)),
    "Q5_1": (7, 32, 24, (0, 2)), "Q8_0": (8, 32, 34, (0,)), "Q2_K": (10, 256, 84, (80, 82)),
    "Q3_K": (11, 256, 110, (108,)), "Q4_K": (12, 256, 144, (0, 2)),
    "Q5_K": (13, 256, 176, (0, 2)), "Q6_K": (14, 256, 210, (208,)),
}
LAYERS, WIDTH, HEADS, KV_HEADS, FFN, VOCABULARY = 28, 3072, 24, 8, 8192, 128256
LAYER_TYPES = {
    "attn_q": ("Q4_0", "Q4_1"), "attn_k": ("Q5_0", "Q8_0"), "attn_v": ("Q6_K", "Q5_1"),
    "attn_output": ("Q5_K", "Q3_K"), "ffn_gate": ("F16", "BF16"), "ffn_up": ("Q8_0", "F16"),
    "ffn_down": ("Q4_0", "Q4_K"),
}


def tensors():
    """Name, dimensions with the innermost first, type."""
    kv = WIDTH // HEADS * KV_HEADS
    shapes = {"attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, kv), "attn_v": (WIDTH, kv),
              "attn_output": (WIDTH, WIDTH), "ffn_gate": (WIDTH, FFN), "ffn_up": (WIDTH, FFN),
              "ffn_down": (FFN, WIDTH)}
    yield "token_embd.weight", (WIDTH, VOCABULARY), "F16"
    yield "output.weight", (WIDTH, VOCABULARY), "Q6_K"
    yield "output_norm.weight", (WIDTH,), "F32"
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}.weight", (WIDTH,), "F32"
        for name, shape in shapes.items():
            types = LAYER_TYPES[name]
            yield f"blk.{layer}.{name}.weight", shape, types[layer % len(types)]


def tile(kind, rng):
    """Whole blocks, about a megabyte: any bits, with factors that make small numbers."""
    _, _, size, factors = TYPES[kind]
    count = (1 << 20) // size
    if factors is None:
        numbers = [rng.gauss(0, 0.02) for _ in range(count)]
        if kind == "BF16":
            return b"".join(struct.pack("<f", x)[2:] for x in numbers)
        return struct.pack(f"<{count}{'e' if kind == 'F16' else 'f'}", *numbers)
    data = bytearray(rng.randbytes(count * size))
    for block in range(count):
        for offset in factors:
            at = block * size + offset
            data[at:at + 2] = struct.pack("<e", rng.uniform(1e-4, 1e-3))
    return bytes(data)


def write_model(path):
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    keys = {"llama.block_count": LAYERS, "llama.embedding_length": WIDTH,
            "llama.feed_forward_length": FFN, "llama.context_length": 8192,
            "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV_HEADS}
    all_tensors = list(tensors())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(all_tensors), len(keys) + 2)
    head += text("general.architecture") + struct.pack("<I", STRING) + text("llama")
    head += text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", FLOAT32, 1e-5)
    for key, value in keys.items():
        head += text(key) + struct.pack("<II", UINT32, value)
    sizes, offset = [], 0
    for name, dims, kind in all_tensors:
        number, elements, size, _ = TYPES[kind]
        count = dims[0] * (dims[1] if len(dims) > 1 else 1)
        sizes.append(count // elements * size)
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, offset)
        offset += -(-sizes[-1] // 32) * 32
    rng = random.Random(1)
    tiles = {}
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        for (_, _, kind), size in zip(all_tensors, sizes):
            if kind not in tiles:
                tiles[kind] = tile(kind, rng)
            piece = tiles[kind]
            for _ in range(size // len(piece)):
                file.write(piece)
            file.write(piece[:size % len(piece)] + bytes(-size % 32))
    return path.stat().st_size


def figure(status, key):
    line = next((line for line in status.splitlines() if line.startswith(f"{key}:")), None)
    return int(line.split()[1]) << 10 if line else 0


def convert(program, model, output):
    """Seconds, the most anonymous memory and the most memory at all."""
    def limit_data():
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))

    start = time.monotonic()
    with subprocess.Popen([program, "convert", model, "-o", output],
                          preexec_fn=limit_data) as process:
        anonymous = whole = 0
        status = pathlib.Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            text = status.read_text()
            anonymous = max(anonymous, figure(text, "RssAnon"))
            whole = max(whole, figure(text, "VmHWM"))
            time.sleep(0.01)
    if process.returncode != 0:
        sys.exit(f"ptero convert fails with {process.returncode}")
    return time.monotonic() - start, anonymous, whole


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/ptero")
    parser.add_argument("--folder", help="where there are 8 GB free (default: the system's "
                        "temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        if shutil.disk_usage(folder).free < 8e9:
            sys.exit(f"{folder} has less than 8 GB free; choose another with --folder")
        model, output = pathlib.Path(folder) / "x.gguf", pathlib.Path(folder) / "x.pte"
        size = write_model(model)
        seconds, anonymous, whole = convert(arguments.program, model, output)
        print(f"{size / 1e9:.2f} GB of GGUF to {output.stat().st_size / 1e9:.2f} GB in "
              f"{seconds:.0f} s; anonymous memory {anonymous / 2**20:.0f} MiB at most, resident "
              f"with the mapped file {whole / 2**20:.0f} MiB")
    if anonymous > LIMIT:
        sys.exit(f"anonymous memory exceeds {LIMIT >> 20} MiB")


if __name__ == "__main__":
    main()
