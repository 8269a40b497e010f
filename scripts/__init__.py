"""Programs for a developer's machine and for operators; nothing here is deployed."""

import sys
from pathlib import Path

# The product lies beside them, in the folder that is deployed.
sys.path.insert(0, str(Path(__file__).parents[1] / "functions"))
