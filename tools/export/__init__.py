# SPDX-License-Identifier: BSD-3-Clause
"""Exports Ptero's test models together with their inputs and goldens (see README.md)."""
