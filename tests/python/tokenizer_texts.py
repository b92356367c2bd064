# SPDX-License-Identifier: BSD-3-Clause
"""Varied texts for comparing tokenizers: languages, code, white space, emoji, broken UTF-8."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

SENTENCES = [
    "The quick brown fox jumps over the lazy dog's 1234567 tails, doesn't it?",
    "Größe und Straße: äöü ÄÖÜ ß — „Zitat“ …", "L'été où l'œuvre naïve coûta 3,50 €.",
    "El niño comió piñas; ¿qué pasó?", "Быстрая лиса прыгает через ленивую собаку №5.",
    "Η γρήγορη αλεπού", "בוקר טוב, עולם! שָׁלוֹם", "مرحبا بالعالم ١٢٣ كَيْفَ",
    "今日はいい天気ですね。カタカナ、ひらがな、漢字。", "快速的棕色狐狸跳过懒狗，价格是１２３元。",
    "안녕하세요 세계 각", "สวัสดีชาวโลก ๑๒๓", "नमस्ते दुनिया क्षत्रिय", "Xin chào thế giới Việt Nam",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇯🇵 😀😀😀", "½ ² ⅷ ① Ⅻ ﬁ ﬂ ﷺ ㍿ Å Å ſ K K ẞ ß İ ı",
    "def f(x: int) -> str:\n    return f\"{x!r}\"  # comment\n\n\n", "for (int i = 0; i < n; ++i) {\n\t\ta[i] += b[i];\n\t}\r\n",
    "<div class=\"a\">&nbsp;</div>\n<!-- x -->", "SELECT * FROM t WHERE a >= 10 AND b != 'it''s';",
    "{\"key\": [1, 2.5, -3e10, null, true]}", "https://example.com/path?q=1&r=%20#frag user@mail.org",
    "I'M we'RE You'll they'Ve he'd 'S 'ſ don't'", "\u200b\u200d\ufeff\u00a0\u2003\u3000\u0085\u180e\u2028 x",
    "e\u0301a\u0308o\u0323\u0302 \u1100\u1161\u11a8 \u0344", "\x00\x01\x1f\x7f\x80\x9f", "▁▁a▁b ▁ Ġ Ċ <0x0A> <unk> ##ing </w>",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "0000000000 12,345.678 1e-5 0xFF", "∑∫√≠≤≥ αβγ → ← ⇒ ∞ ∂",
    "   leading", "trailing   ", "a  b   c    d", "\t\t\n\n \r\n \n\t x\n", "-----====____****", "...!!!???",
    "CamelCaseIdentifier snake_case_name SCREAMING_CASE kebab-case-name",
]
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n", "\n ", "", "", "", "\u00a0", "\u3000"]
RANGES = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF),
          (0x900, 0x97F), (0xE00, 0xE7F), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2070, 0x2BFF),
          (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFE00, 0xFFFD),
          (0x10000, 0x103FF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF)]


def one(rng: random.Random) -> str:
    kind = rng.randrange(6)
    if kind == 0:  # pieces of sentences, put together
        parts = []
        for _ in range(rng.randrange(1, 6)):
            sentence = rng.choice(SENTENCES)
            start = rng.randrange(len(sentence))
            parts.append(sentence[start:start + rng.randrange(1, 40)])
            parts.append(rng.choice(SPACES))
        return "".join(parts)
    if kind == 1:  # words of sentences, shuffled, in varied case
        words = [w for _ in range(3) for w in rng.choice(SENTENCES).split()]
        rng.shuffle(words)
        case = rng.choice([str, str, str.upper, str.title, str.lower])
        return "".join(case(word) + rng.choice(SPACES) for word in words)
    if kind == 2:  # characters of one or two scripts
        blocks = rng.sample(RANGES, 2)
        return "".join(chr(rng.randint(*rng.choice(blocks))) for _ in range(rng.randrange(1, 30)))
    if kind == 3:  # any characters
        return "".join(chr(rng.randint(*rng.choice(RANGES))) for _ in range(rng.randrange(0, 30)))
    if kind == 4:  # runs
        pool = " \t\n\r'.,a0A\u00a0é中😀_-"
        return "".join(rng.choice(pool) * rng.randrange(1, 9) for _ in range(rng.randrange(1, 12)))
    return rng.choice(SENTENCES)[rng.randrange(5):] + rng.choice(SPACES)


def texts(count: int, seed: int = 1) -> list[bytes]:
    """Most are UTF-8; of one in twelve some bytes are broken."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        # A punctuation mark of Unicode 14, newer than the tables of the tokenizers library.
        data = one(rng).replace("\u061d", "").encode("utf-8", "replace")
        if data and rng.randrange(12) == 0:
            broken = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                broken[rng.randrange(len(broken))] = rng.randrange(256)
            data = bytes(broken[:rng.randrange(1, len(broken) + 1)])
        made.append(data)
    return made


def lossy(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def u32s(values) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def run(program: Path, arguments: list[str], data: bytes) -> bytes:
    done = subprocess.run([program, *arguments], input=data, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout


def encode(program: Path, file: Path, inputs: list[bytes], *options: str) -> list[list[int]]:
    data = b"".join(u32s([len(text)]) + text for text in inputs)
    out = run(program, [str(file), "encode", *options], data)
    words = struct.unpack(f"<{len(out) // 4}I", out)
    ids, at = [], 0
    while at < len(words):
        ids.append(list(words[at + 1:at + 1 + words[at]]))
        at += 1 + words[at]
    assert len(ids) == len(inputs)
    return ids


def decode(program: Path, file: Path, inputs: list[list[int]], *options: str) -> list[str]:
    data = b"".join(u32s([len(ids), *ids]) for ids in inputs)
    out = run(program, [str(file), "decode", *options], data)
    made, at = [], 0
    while at < len(out):
        (size,) = struct.unpack_from("<I", out, at)
        made.append(out[at + 4:at + 4 + size].decode("utf-8"))  # always UTF-8
        at += 4 + size
    assert len(made) == len(inputs)
    return made
