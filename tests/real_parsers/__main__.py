"""Runs the benchmark: `python -m tests.real_parsers --trees FOLDER --python PYTHON [--only verl@v0.6.1] [--write]`.

FOLDER holds a checkout of every tag, named MIRROR@TAG; PYTHON has Hydra, OmegaConf, transformers and a CPU torch.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import yaml
from msgspec import Struct

from advisor.plan.patch import fits_name
from advisor.plan.plan import Change
from tests.real_parsers.attempts import Attempt, attempts
from tests.real_parsers.compare import ANYTHING, differences
from tests.real_parsers.sandbox import Started, started

HERE = Path(__file__).parent
UPSTREAM, RESULTS = HERE / "upstream.yaml", HERE / "results.yaml"


class Launched(Struct, frozen=True):
    """One training that a script starts: its program and the words for its parser."""

    launcher: tuple[str, ...]
    """The words before the program, in which Ray is told of variables."""
    program: str
    argv: tuple[str, ...]
    cwd: str
    environment: tuple[tuple[str, str], ...]


class Judge:
    """A framework's parser at one tag, in a process of its own."""

    def __init__(
        self, python: str, name: str, tree: Path, packages: str = "", variables: Mapping[str, str] | None = None
    ) -> None:
        path = os.pathsep.join(part for part in (packages, str(HERE)) if part)
        environment = {
            **os.environ,
            **(variables or {}),
            "PYTHONPATH": path,
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        self.answered: dict[Launched, dict[str, Any]] = {}
        self.process = subprocess.Popen(
            [python, "-m", "judges.serve", name, str(tree)],
            cwd=HERE,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, launch: Launched) -> dict[str, Any]:
        """Whether the parser accepts, its error, and the values it understood."""
        if launch in self.answered:
            return self.answered[launch]
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("no pipes")
        asked = {"program": launch.program, "argv": launch.argv, "cwd": launch.cwd}
        self.process.stdin.write(json.dumps({**asked, "environment": dict(launch.environment)}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the judge died")
        self.answered[launch] = json.loads(line)
        return self.answered[launch]

    def close(self) -> None:
        """End it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def documented_launch(program: Path) -> Path:
    """A script with the first launch that a program's docstring shows, written beside it."""
    lines = (ast.get_docstring(ast.parse(program.read_text())) or "").splitlines()
    begin = next((n for n, line in enumerate(lines) if "accelerate launch" in line or "python " in line), len(lines))
    end = begin
    while end < len(lines) and lines[end].rstrip().endswith("\\"):
        end += 1
    script = program.with_name(f"{program.stem}.launch.sh")
    script.write_text("#!/bin/bash\n" + "\n".join(lines[begin : end + 1]).strip().rstrip("`") + "\n")
    return script


def launches(commands: Sequence[Started], program: str) -> list[Launched]:
    """The trainings among the commands of a script."""
    found = []
    for command in commands:
        for at, word in enumerate(command.argv):
            if (match := re.fullmatch(program, word)) is not None:
                rest = command.argv[at + 1 :]
                found.append(
                    Launched(
                        command.argv[:at], match.group(1), rest, command.cwd, tuple(sorted(command.environment.items()))
                    )
                )
                break
    return found


def trainings(script: Path, tree: Path, about: Mapping[str, Any]) -> list[Launched]:
    """The trainings of a script as bash starts them, or the one that a config file is for."""
    if script.suffix == ".sh":
        return launches(started(script, tree), about["program"])
    words = [word.format(file=script, folder=script.parent.name, name=script.stem) for word in about["file_words"]]
    told = (("DIGEST_OF_FILE", hashlib.sha256(script.read_bytes()).hexdigest()),)  # one path, another question
    return [Launched((), "", tuple(words), str(tree), told)]


def judged(
    attempt: Attempt,
    before: Sequence[Launched],
    after: Sequence[Launched],
    judge: Judge,
    derived: Mapping[str, Sequence[str]],
) -> tuple[str, str]:
    """("accepted" | "refused" | "other", what is wrong) of one written script."""
    if len(before) != len(after):
        return "other", f"{len(before)} trainings before, {len(after)} after"
    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    if not moved:
        return "other", "the command is the same as before"
    for old, new in moved:
        answer = judge.ask(new)
        if not answer["accepted"]:
            return "refused", answer["error"]
        faults = differences(judge.ask(old)["values"], answer["values"], attempt.changes, derived)
        lost = [c.key for c in attempt.environment if not _set(c, new)]
        said = [f"{fault.key}: {fault.says}" for fault in faults] + [f"{key}: not in the environment" for key in lost]
        if said:
            return "other", "; ".join(said)
    return "accepted", ""


def _set(change: Change, launch: Launched) -> bool:
    """Whether a variable has its value for the training, from the shell or from a word of `ray job submit`."""
    given = dict(launch.environment).get(change.key)
    told = any(change.key in word and str(change.new) in word for word in launch.launcher)
    return told or given == change.new


def tried(
    name: str, about: Mapping[str, Any], tag: str, scripts: Sequence[str], given: argparse.Namespace, out: TextIO
) -> Counter[str]:
    """All attempts on the scripts of one tag, counted; every one that failed goes to `out` as a line."""
    tree = given.trees / f"{about['mirror']}@{tag}"
    packages = about.get("packages", {}).get(tag, "")
    overlay = str(given.trees.parent / packages) if packages else ""
    variables = {key: str(given.trees / value) for key, value in about.get("environment", {}).items()}
    judge, counts = Judge(given.python, about["judge"], tree, overlay, variables), Counter[str]()
    derived = {**about["derived"], **{key: [ANYTHING] for key in about.get("clock", ())}}
    version = about.get("library", name) + "=" + about.get("versions", {}).get(tag, tag.removeprefix("v"))
    for file in scripts:
        script = tree / file
        if not script.exists():
            print(f"   missing {tag} {file}", file=sys.stderr)
            continue
        if script.suffix == ".py" and "file_words" not in about:
            script = documented_launch(script)
        before = trainings(script, tree, about)
        answers = [judge.ask(launch) for launch in before]
        if not answers or not all(answer["accepted"] for answer in answers):
            counts["left out"] += 1
            said = next((a["error"] for a in answers if not a["accepted"]), "it starts no training")
            out.write(json.dumps({"framework": name, "tag": tag, "script": file, "left_out": said}) + "\n")
            continue
        counts["scripts"] += 1
        copy = fits_name(script)
        known: dict[bytes, tuple[str, str]] = {}
        for attempt in attempts(script, version, tuple(given.modes.split(","))):
            if attempt.text not in known:
                copy.write_bytes(attempt.text)
                after = trainings(copy, tree, about)
                known[attempt.text] = judged(attempt, before, after, judge, derived)
            verdict, said = known[attempt.text]
            counts["plans" if attempt.recommended else "steps"] += 1
            counts[f"{verdict} {attempt.mode}"] += 1
            if verdict != "accepted":
                steps = {"steps": attempt.steps, "recommended": attempt.recommended}
                line = {"framework": name, "tag": tag, "script": file, "mode": attempt.mode, "crash": attempt.crash}
                changes = [f"{c.key}: {c.old} -> {c.new}" for c in (*attempt.changes, *attempt.environment)]
                out.write(json.dumps({**line, **steps, "verdict": verdict, "said": said, "changes": changes}) + "\n")
                out.flush()
        copy.unlink(missing_ok=True)
    judge.close()
    return counts


def main() -> None:
    """Try everything that was asked for, print the counts, and keep them where that was asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--only", default="", help="FRAMEWORK or FRAMEWORK@TAG, with commas")
    parser.add_argument("--modes", default="told,checkout,alone")
    parser.add_argument("--faults", type=Path, default=Path(os.devnull), help="JSON lines of what was not accepted")
    parser.add_argument("--write", action="store_true", help="keep the counts in results.yaml")
    given = parser.parse_args()
    only = {name for name in given.only.split(",") if name}
    results = yaml.safe_load(RESULTS.read_text()) if RESULTS.exists() else {}
    with given.faults.open("w") as out:
        for name, about in yaml.safe_load(UPSTREAM.read_text()).items():
            for tag, scripts in about["scripts"].items():
                if only and not only & {name, f"{name}@{tag}"}:
                    continue
                counts = tried(name, about, tag, scripts, given, out)
                print(f"{name} {tag}: " + ", ".join(f"{what} {n}" for what, n in sorted(counts.items())), flush=True)
                results.setdefault(name, {})[tag] = {"date": f"{datetime.date.today()}", **dict(counts)}
    if given.write:
        RESULTS.write_text("# Written by `python -m tests.real_parsers --write`.\n" + yaml.safe_dump(results))


if __name__ == "__main__":
    main()
