"""Read what pip-audit found (JSON on standard input); ends with 1 where something locked has a known vulnerability.

Where nobody could be asked, that is said, and is no failure.
"""

from __future__ import annotations

import json
import sys


def main() -> int:
    """Say what was audited and what was found."""
    try:
        packages = json.load(sys.stdin)["dependencies"]
    except ValueError:
        packages = []
    asked = [package for package in packages if "vulns" in package]
    if not asked:
        print("not audited: no advisories could be asked for")
        return 0
    found = [f"{package['name']} {package['version']}: {one['id']}" for package in asked for one in package["vulns"]]
    print(f"{len(asked)} of {len(packages)} packages audited, {len(found)} known vulnerabilities")
    print(*(f"  {line}\n" for line in found), sep="", end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
