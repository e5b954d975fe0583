"""Puts tests/ on the path, so that slow versions are imported as `reference.…`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
