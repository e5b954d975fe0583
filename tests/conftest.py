"""Puts tests/ on the path, so that slow versions are imported as `reference.…`; and lets Ctrl-C work in what tests start."""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# where the shell made Ctrl-C ignored, as for jobs in the background, the processes that tests start would ignore it too
signal.signal(signal.SIGINT, signal.default_int_handler)
