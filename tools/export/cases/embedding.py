# SPDX-License-Identifier: BSD-3-Clause
"""Row look-ups in float32 tables, and the other gathers."""

import torch
from torch import nn

from tools.export.case import Case, f32, i32, i64, once, values
from tools.export.modules import all_of, apply, fill


def _table(rows: int, width: int):
    return lambda: fill(nn.Embedding(rows, width), scale=1)


CASES = [
    Case(
        name="embedding_int64",
        module=_table(101, 12),
        sequences=once(values(torch.int64, [0, 100, 57, 57, 3, 99, 1], 1, 7)),
        operators={"aten.embedding.default": 1},
    ),
    Case(
        name="embedding_int32_odd",
        module=_table(19, 7),
        sequences=once(i32(2, 3, low=0, high=18)),
        operators={"aten.embedding.default": 1},
    ),
    Case(
        name="embedding_one_index",
        module=_table(5, 33),
        sequences=once(values(torch.int64, [4])),
        operators={"aten.embedding.default": 1},
    ),
    Case(
        name="embedding_17000_rows",
        module=_table(17000, 2),
        sequences=once(values(torch.int64, [0, 16383, 16384, 16999], 1, 4)),
        operators={"aten.embedding.default": 1},
        big=True,
    ),
    Case(
        name="index_select",
        module=all_of(*(lambda x, i, d=d: torch.index_select(x, d, i) for d in range(3))),
        sequences=once(f32(3, 5, 7), values(torch.int32, [2, 0, 1, 2])),
        operators={"aten.index_select.default": 3},
    ),
    Case(
        name="gather",
        module=all_of(
            lambda x, i: torch.gather(x, 0, i),
            lambda x, i: torch.gather(x, 1, i),
            lambda x, i: torch.gather(x, 2, i),
        ),
        sequences=once(f32(3, 5, 7), i64(2, 3, 4, low=0, high=2)),
        operators={"aten.gather.default": 3},
    ),
    Case(
        name="index_vector",
        module=apply(lambda x, i: x[i]),
        sequences=once(f32(16), values(torch.int64, [15, 0, 7, 7, 3], 5)),
        operators={"aten.index.Tensor": 1},
    ),
]
