// SPDX-License-Identifier: BSD-3-Clause
#include "text/chat_template.h"
