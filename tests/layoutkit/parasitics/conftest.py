"""What the tests of parasitics share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # makes the field solver importable by the tests beside it
