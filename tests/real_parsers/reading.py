"""Compares how scripts are read with what the framework's own parser makes of them.

`python -m tests.real_parsers.reading --trees FOLDER --python PYTHON verl@v0.9.0 'examples/**/*.sh'`: of every script
its first training, and of that the value in force of every setting that the dialect knows there.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from advisor.run.natives import Natives
from advisor.session import SessionRequest, open_session
from tests.real_parsers.__main__ import UPSTREAM, Judge, trainings
from tests.real_parsers.attempts import GPUS, HOST_RAM
from tests.real_parsers.compare import same_value


def misread(natives: Natives, composed: Mapping[str, Any]) -> Iterator[str]:
    """The settings whose value in force is another than the parser's, in words; but not what nobody could resolve."""
    for key, known in sorted(natives.values.items()):
        if key not in composed or known.text is None:  # nobody could resolve it, or the dialect leaves it open
            continue
        theirs = composed[key]
        if theirs is None and not known.given:  # the framework fills it in its code
            continue
        while isinstance(theirs, str) and theirs.startswith("${") and theirs.removeprefix("${").rstrip("}") in composed:
            theirs = composed[theirs.removeprefix("${").rstrip("}")]
        if isinstance(theirs, str) and "${" in theirs:
            continue
        if not same_value(theirs, "null" if known.text is None else known.text):
            yield f"{key}: {known.text} ({known.source}), the parser has {theirs}"


def asked_of(judge: Judge, script: Path, tree: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """What the parser says of the first training that a script starts, or that a config file is for."""
    try:
        found = trainings(script, tree, about)
    except RuntimeError as error:
        return {"accepted": False, "error": f"it does not run here: {' '.join(str(error).split())}"}
    return judge.ask(found[0]) if found else {"accepted": False, "error": "it starts no training"}


def main() -> None:
    """Read every script both ways, and print where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("tag", help="FRAMEWORK@TAG")
    parser.add_argument("scripts", nargs="?", default="examples/**/*.sh")
    given = parser.parse_args()
    name, _, tag = given.tag.partition("@")
    about = yaml.safe_load(UPSTREAM.read_text())[name]
    tree = given.trees / f"{about['mirror']}@{tag}"
    packages = about.get("packages", {}).get(tag, "")
    overlay = str(given.trees.parent / packages) if packages else ""
    judge, counts = Judge(given.python, about["judge"], tree, overlay), Counter[str]()
    version = about.get("versions", {}).get(tag, tag.removeprefix("v"))
    library = f"{about.get('library', name)}={version}"
    for script in sorted(tree.glob(given.scripts)):
        shown = script.relative_to(tree)
        answer = asked_of(judge, script, tree, about)
        if not answer["accepted"]:
            counts["left out"] += 1
            print(f"{shown}: left out, {answer['error']}")
            continue
        asked = SessionRequest(script=script, gpus=GPUS, host_ram=HOST_RAM, libraries=(library,))
        situation = open_session(asked).situation
        found = [] if situation is None else list(misread(situation.now.built.natives, answer["values"]))
        counts["settings"] += 0 if situation is None else len(situation.now.built.natives.values)
        counts["read" if not found else "misread"] += 1
        for line in found:
            print(f"{shown}: {line}")
    judge.close()
    print(f"{given.tag}: " + ", ".join(f"{what} {n}" for what, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
