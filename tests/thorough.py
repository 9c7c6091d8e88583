"""Whether tests draw all combinations of their parameters, as `make hierarchy` does, or some that cover each value."""

import os

THOROUGH = "DRC_LAYOUTS" in os.environ
