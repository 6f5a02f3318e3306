"""Write knowledge/keys/FRAMEWORK.json: every key that a framework reads, by era. Run by hand after a release was read.

    python -m tests.knowledge.write_keys FRAMEWORK /path/to/bare-mirror.git [--packages FOLDER]

Each era says what is new in it and what is gone since the one before, so that a diff shows a release.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

from advisor.folders import knowledge_folder
from advisor.knowledge import load_knowledge
from tests.knowledge.upstream import Mirror, Packages, Tree, Upstream, all_keys, upstream_of


def key_space(upstream: Upstream, mirror: Tree, packages: Tree, package: str) -> dict[str, Any]:
    """The file's content: eras from the oldest to the newest."""
    before: set[str] = set()
    eras, free = [], dict[str, None]()
    for era, source in upstream.eras.items():
        found = all_keys(source, mirror, packages, package)
        here = {key for key in found if _is_key(key)}
        told = {"era": era, "source": f"{upstream.repository}@{source.tag}", "new": sorted(here - before)}
        eras.append({**told, "gone": sorted(before - here)})
        free |= dict.fromkeys([*source.free, *sorted(key for key in found if "*" in key and key.strip("*-."))])
        before = here
    return {"refuses": upstream.refuses, "open": [*free], "eras": eras}


def _is_key(key: str) -> bool:
    return "*" not in key and not fnmatch(key, "*[! -~]*") and not key.startswith("_") and len(key) < 120


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file of one framework."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework")
    parser.add_argument("mirror")
    parser.add_argument("--packages", metavar="FOLDER", help="keep downloaded packages here")
    given = parser.parse_args(arguments)
    dialect = next(one for one in load_knowledge().frameworks if one.framework == given.framework)
    space = key_space(upstream_of(given.framework), Mirror(given.mirror), Packages(given.packages), dialect.package)
    folder = knowledge_folder() / "keys"
    folder.mkdir(exist_ok=True)
    file = folder / f"{given.framework}.json"
    file.write_text(json.dumps(space, indent=1) + "\n", encoding="utf-8")
    print(file, *(f"{era['era']}: +{len(era['new'])} -{len(era['gone'])}" for era in space["eras"]))


if __name__ == "__main__":
    main()
