"""Running: the store of results, provenance, the claims ledger, the execution of chapters, the book.

Nothing outside this package writes a file.
"""

from fairfront.runs.ledger import Measurement
from fairfront.runs.store import Result, compute
from fairfront.runs.verdicts import verdicts

__all__ = ["Measurement", "Result", "compute", "verdicts"]
