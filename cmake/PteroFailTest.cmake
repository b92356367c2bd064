# SPDX-License-Identifier: BSD-3-Clause
# Stands in for a GPU test whose adapter is unknown: cmake -DMESSAGE=... -P PteroFailTest.cmake
message(FATAL_ERROR "${MESSAGE}")
