"""The linear estimators are imported without torch; the network's is there when it is asked for."""

from __future__ import annotations

import subprocess
import sys


def test_torch_is_loaded_only_with_the_estimator_that_needs_it() -> None:
    program = (
        "import sys, fairfront.estimators as e; assert 'torch' not in sys.modules; "
        "e.ConstrainedClassifier; assert 'torch' in sys.modules; "
        "from fairfront.estimators import ConstrainedClassifier"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
