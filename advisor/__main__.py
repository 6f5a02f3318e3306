"""`python -m advisor`: the same door as the console script."""

import sys

from advisor.cli import main

if __name__ == "__main__":
    sys.exit(main())
