// SPDX-License-Identifier: BSD-3-Clause
#include "text/tokenizer.h"
