"""Whether tests draw all combinations of their parameters and many random examples, as `make hierarchy` does.

Otherwise they draw some combinations that cover each value, and fewer examples.
"""

import os

THOROUGH = "DRC_LAYOUTS" in os.environ
