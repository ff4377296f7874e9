"""torch is loaded by the neural half only, and numba by nothing but a compiled step."""

import subprocess
import sys

import pytest

CORE = "fairfront.cli, fairfront.risks, fairfront.metrics, fairfront.pareto, fairfront.bilevel, fairfront.datasets"


@pytest.mark.parametrize(
    ("modules", "absent"), [(CORE, "torch"), ("fairfront.constrained", "numba"), ("fairfront.constrained", "pandas")]
)
def test_what_is_not_loaded(modules, absent):
    code = f"import sys, {modules}; sys.exit('{absent}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
