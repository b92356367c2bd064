# SPDX-License-Identifier: BSD-3-Clause
import os


def pytest_report_header():
    folder = os.environ.get("PTERO_TEST_MODELS")
    return (f"PTERO_TEST_MODELS: {folder}" if folder
            else "PTERO_TEST_MODELS is not set: only the project's own models are read")
