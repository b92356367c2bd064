# SPDX-License-Identifier: BSD-3-Clause
"""One module per operator family, each with a list CASES."""
