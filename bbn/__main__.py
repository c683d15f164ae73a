"""`python -m bbn`, the same as `bbn`."""

import sys

from bbn.cli import main

sys.exit(main())
