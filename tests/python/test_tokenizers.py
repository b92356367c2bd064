# SPDX-License-Identifier: BSD-3-Clause
"""Our tokenizers against the reference libraries, on small vocabularies that are trained here and
on the tokenizer.json files of PTERO_TEST_MODELS."""

from __future__ import annotations

import base64
import os
import pathlib
import random

import pytest
import sentencepiece
import tiktoken
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

from tokenizer_texts import SENTENCES, decode, encode, lossy, texts

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / os.environ.get("PTERO_BUILD_DIR", "build/ci") / "tests/tokenize"
INPUTS = texts(3000)
STRINGS = [lossy(data) for data in INPUTS]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLITS = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def fields(data: bytes):
    """The fields of one message of a protocol buffer: number, payload."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            yield tag >> 3, data[at:at + size]
            at += size


def train_sentencepiece(folder: pathlib.Path, name: str, **options) -> pathlib.Path:
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(line for s in SENTENCES for line in s.splitlines()), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(folder / name), minloglevel=2,
        hard_vocab_limit=False, num_threads=1, **options)
    return folder / f"{name}.model"


def charsmap(folder: pathlib.Path) -> bytes:
    """SentencePiece's table for nmt_nfkc."""
    model = train_sentencepiece(folder, "nfkc", vocab_size=400)
    normalizer = next(payload for number, payload in fields(model.read_bytes()) if number == 3)
    return next(payload for number, payload in fields(normalizer) if number == 2)


def trained(model, trainer, normalizer=None, splitter=None) -> Tokenizer:
    made = Tokenizer(model)
    if normalizer is not None:
        made.normalizer = normalizer
    if splitter is not None:
        made.pre_tokenizer = splitter
    made.train_from_iterator(SENTENCES * 2, trainer)
    return made


def bpe(splitter, normalizer=None, size=900, **model) -> Tokenizer:
    if "unk_token" in model:
        alphabet = {"special_tokens": ["<unk>", *BYTES]}
    else:
        alphabet = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    affixes = {key: model[key] for key in ("end_of_word_suffix", "continuing_subword_prefix")
               if key in model}
    return trained(models.BPE(**model),
                   trainers.BpeTrainer(vocab_size=size, show_progress=False, **alphabet, **affixes),
                   normalizer, splitter)


def sequence(*steps):
    return pre_tokenizers.Sequence(list(steps))


def byte_level() -> Tokenizer:
    made = bpe(pre_tokenizers.ByteLevel(add_prefix_space=True))
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|end|>", AddedToken("<|left|>", lstrip=True, special=True),
                             AddedToken("<|right|>", rstrip=True, special=True)])
    made.add_tokens([AddedToken("fox", single_word=True), AddedToken("  ", normalized=False), "é"])
    return made


def llama3() -> Tokenizer:
    made = bpe(sequence(pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)),
               ignore_merges=True)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|begin|>", "<|eot_id|>"])
    ids = [(t, made.token_to_id(t)) for t in ("<|begin|>", "<|eot_id|>")]
    made.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False),
         processors.TemplateProcessing(single="<|begin|> $A <|eot_id|>", special_tokens=ids)])
    return made


def digits_and_nfc() -> Tokenizer:
    made = bpe(sequence(pre_tokenizers.Digits(individual_digits=True),
                        pre_tokenizers.ByteLevel(add_prefix_space=False)), normalizers.NFC())
    made.decoder = decoders.ByteLevel()
    return made


def metaspace(scheme: str, split: bool = True) -> Tokenizer:
    made = bpe(pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split), byte_fallback=True,
               unk_token="<unk>", fuse_unk=True)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    made.add_special_tokens(["<s>", "</s>"])
    return made


def llama2() -> Tokenizer:
    made = bpe(None, normalizers.Sequence([normalizers.Prepend("▁"),
                                           normalizers.Replace(" ", "▁")]),
               byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    made.add_special_tokens(["<s>", "</s>"])
    return made


def unknown_characters(fuse: bool) -> Tokenizer:
    made = bpe(pre_tokenizers.Whitespace(), normalizers.Sequence(
        [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]),
        unk_token="<unk>", fuse_unk=fuse, end_of_word_suffix="</w>", size=400)
    made.decoder = decoders.BPEDecoder()
    return made


def unigram(folder: pathlib.Path) -> Tokenizer:
    made = trained(models.Unigram(),
                   trainers.UnigramTrainer(vocab_size=400, unk_token="<unk>",
                                           special_tokens=["<unk>", "</s>"], show_progress=False),
                   normalizers.Sequence([normalizers.Precompiled(charsmap(folder)),
                                         normalizers.Replace(Regex(" {2,}"), " ")]),
                   pre_tokenizers.Metaspace())
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>",
                                                        special_tokens=[("</s>", 1)])
    return made


def word_piece() -> Tokenizer:
    made = trained(models.WordPiece(unk_token="[UNK]"),
                   trainers.WordPieceTrainer(
                       vocab_size=500, special_tokens=["[UNK]", "[CLS]", "[SEP]"],
                       show_progress=False),
                   normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return made


def words() -> Tokenizer:
    return trained(models.WordLevel(unk_token="[UNK]"),
                   trainers.WordLevelTrainer(vocab_size=300, special_tokens=["[UNK]"],
                                             show_progress=False),
                   normalizers.Sequence([normalizers.NFKC(), normalizers.Nmt(),
                                         normalizers.Strip()]),
                   pre_tokenizers.WhitespaceSplit())


def splitting(behavior: str, invert: bool) -> Tokenizer:
    made = bpe(sequence(pre_tokenizers.Split(Regex(r"\w+"), behavior, invert),
                        pre_tokenizers.Split("a", behavior),
                        pre_tokenizers.Punctuation(behavior), pre_tokenizers.Digits(),
                        pre_tokenizers.CharDelimiterSplit("-"),
                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)),
               normalizers.NFKD())
    made.decoder = decoders.ByteLevel()
    return made


SMALL = {"byte_level": byte_level, "llama3": llama3, "llama2": llama2, "words": words,
         "digits_and_nfc": digits_and_nfc, "word_piece": word_piece, "unigram": unigram,
         "unknown": lambda: unknown_characters(False), "fused": lambda: unknown_characters(True),
         **{f"metaspace_{s}": lambda s=s: metaspace(s) for s in ("always", "first", "never")},
         "metaspace_whole": lambda: metaspace("first", False),
         **{f"{b}_{i}": lambda b=b, i=i: splitting(b, i) for b in SPLITS for i in (False, True)}}


def compare(ours, theirs, inputs):
    assert len(ours) == len(theirs)
    differ = [(given, one, other) for given, one, other in zip(inputs, ours, theirs)
              if one != other]
    assert not differ, f"{len(differ)} of {len(ours)} differ, the first: {differ[0]}"


def check_against(reference: Tokenizer, file: pathlib.Path):
    """Encoding with what the file adds, with special tokens as text, and decoding."""
    ids = [one.ids for one in reference.encode_batch(STRINGS)]
    assert sum(map(len, ids)) > 3000
    compare(encode(PROGRAM, file, INPUTS, "--special"), ids, STRINGS)
    compare(decode(PROGRAM, file, ids), reference.decode_batch(ids, skip_special_tokens=False), ids)
    special = [token.content for token in reference.get_added_tokens_decoder().values()]
    rng = random.Random(5)
    mixed = [text[:9] + rng.choice(special) + rng.choice(["", " ", "x"]) + text[9:]
             for text in STRINGS[:500] if special]
    data = [text.encode() for text in mixed]
    for plain in (False, True):
        reference.encode_special_tokens = plain
        compare(encode(PROGRAM, file, data, *["--no-parse"] * plain),
                [one.ids for one in reference.encode_batch(mixed, add_special_tokens=False)], mixed)
    reference.encode_special_tokens = False


@pytest.mark.parametrize("name", SMALL)
def test_small_tokenizers_are_as_the_tokenizers_library_has_them(name, tmp_path):
    make = SMALL[name]
    reference = make(tmp_path) if name == "unigram" else make()
    file = tmp_path / "tokenizer.json"
    reference.save(str(file))
    check_against(reference, file)


def test_tokenizer_files_of_models():
    folder = os.environ.get("PTERO_TEST_MODELS")
    found = sorted(pathlib.Path(folder).rglob("tokenizer.json")) if folder else []
    for file in found:
        reference = Tokenizer.from_file(str(file))
        check_against(reference, file)
        rng = random.Random(3)
        ids = [[rng.randrange(reference.get_vocab_size()) for _ in range(8)] for _ in range(2000)]
        compare(decode(PROGRAM, file, ids, "--skip-special"), reference.decode_batch(ids), ids)


@pytest.mark.parametrize("options", [
    {"model_type": "unigram"}, {"model_type": "bpe"},
    {"model_type": "unigram", "byte_fallback": True, "user_defined_symbols": ["fox", "▁x", " y"]},
    {"model_type": "bpe", "byte_fallback": True, "user_defined_symbols": ["fox", "日本"]},
    {"model_type": "bpe", "normalization_rule_name": "identity",
     "remove_extra_whitespaces": False, "byte_fallback": True},
    {"model_type": "unigram", "add_dummy_prefix": False, "remove_extra_whitespaces": False},
    {"model_type": "bpe", "treat_whitespace_as_suffix": True},
    {"model_type": "unigram", "normalization_rule_name": "nfkc_cf", "byte_fallback": True}],
    ids=lambda options: "_".join(str(value) for value in options.values()))
def test_sentencepiece_models(options, tmp_path):
    file = train_sentencepiece(tmp_path, "small", vocab_size=560, **options)
    reference = sentencepiece.SentencePieceProcessor(str(file))
    ids = reference.encode(STRINGS)
    compare(encode(PROGRAM, file, INPUTS, "--no-parse"), ids, STRINGS)
    compare(decode(PROGRAM, file, ids, "--skip-special"), [reference.decode(i) for i in ids], ids)
    rng = random.Random(3)
    mixed = [[rng.randrange(3, reference.vocab_size()) for _ in range(8)] for _ in range(1000)]
    compare(decode(PROGRAM, file, mixed, "--skip-special"),
            [reference.decode(i) for i in mixed], mixed)


def test_tiktoken_ranks(tmp_path):
    ranks = {bytes([byte]): byte for byte in range(256)}
    rng = random.Random(1)
    data = [sentence.encode() for sentence in SENTENCES]
    while len(ranks) < 3000:  # any substring, so that merges compete
        source = rng.choice(data)
        start = rng.randrange(len(source))
        ranks.setdefault(source[start:start + rng.randrange(2, 7)], len(ranks))
    ranks = {token: rank for rank, token in enumerate(ranks)}
    file = tmp_path / "small.tiktoken"
    file.write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n"
                            for token, rank in ranks.items()))
    reference = tiktoken.Encoding("small", pat_str=LLAMA3, mergeable_ranks=ranks,
                                  special_tokens={})
    ids = [reference.encode_ordinary(text) for text in STRINGS]
    compare(encode(PROGRAM, file, INPUTS, "--pattern", LLAMA3), ids, STRINGS)
    mixed = [[rng.randrange(len(ranks)) for _ in range(8)] for _ in range(1000)]
    compare(decode(PROGRAM, file, ids + mixed, "--pattern", LLAMA3),
            [reference.decode(i) for i in ids + mixed], ids + mixed)
