"""Reads every example of a release as its user would: `python -m tests.real_parsers.examples --trees FOLDER`.

Of each launch: what `settings`, `estimate` and `diagnose` of a made-up crash say, beside what upstream's own words say
(labels.py). Printed: framework, method and backend that are not those, commands that fail, keys not understood.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from advisor.cli import main as command
from advisor.session import SessionRequest, open_session
from tests.real_parsers.__main__ import documented_launch, launches
from tests.real_parsers.attempts import GPUS, HOST_RAM, LOGS
from tests.real_parsers.labels import LABELS, Label, Words, file_words, words_of
from tests.real_parsers.sandbox import started

EXAMPLES = Path(__file__).with_name("examples.yaml")
READ = Path(__file__).with_name("examples_read.yaml")
"""What the last run found, of which docs/accuracy.md makes its table."""
DONE = (0, 3, 4)
"""Exit codes of a command that answered."""


class Read(Struct, frozen=True):
    """One example: upstream's word, ours, and what went wrong."""

    file: str
    label: Label
    framework: str
    method: str
    backend: str
    unknown: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Commands that did not answer, with their last line."""

    def wrong(self) -> tuple[str, ...]:
        """Which of the three is not upstream's."""
        label = self.label
        pairs = (
            ("framework", self.framework == label.framework),
            ("method", self.method in label.methods),
            ("backend", not label.backend or self.backend == label.backend),
        )
        return tuple(what for what, right in pairs if not right)


def read_examples(name: str, about: Mapping[str, Any], tree: Path, library: str = "") -> Iterator[Read | str]:
    """Every example of a checkout; a text for one that is left out, with the reason."""
    for file in sorted({file for pattern in about["launches"] for file in tree.glob(pattern)}):
        shown = str(file.relative_to(tree))
        reason = next((why for pattern, why in about.get("apart", {}).items() if fnmatch(shown, pattern)), "")
        try:
            given = None if reason else _given(file, about, tree)
        except (RuntimeError, SyntaxError, yaml.YAMLError) as error:
            given, reason = None, " ".join(str(error).split())[-120:]
        if given is None:
            yield f"{shown}: {reason or 'starts no training'}"
            continue
        script, words = given
        yield _read(shown, script, LABELS[name](words, shown), library)


def _given(file: Path, about: Mapping[str, Any], tree: Path) -> tuple[Path, Words] | None:
    """What is handed to the program, and the words that upstream's reads of it; None where nothing trains."""
    if file.suffix in (".yaml", ".yml"):
        return file, {"": "", **file_words(file)}
    script = documented_launch(file) if file.suffix == ".py" else file
    if script is not file:  # it is typed where its paths begin
        script = script.rename(tree / script.name)
    trainings = launches(started(script, tree), about["program"])
    if not trainings:
        return None
    training = trainings[-1]
    before = " ".join(Path(word).name for word in training.launcher if not word.startswith("-"))
    program = f"{before} {training.program}" if about["program"].startswith("(rlhf") else training.program
    words = words_of(program, training.argv)
    config = "/".join(words.get(key, "") for key in about.get("config", ()))
    places = [
        folder / f"{config}{end}"
        for folder in (Path(training.cwd), file.parent, tree / "examples")
        for end in ("", ".yaml")
    ]
    told = next((file_words(place) for place in places if config and place.is_file()), {})
    source = {"source": file.read_text()} if file.suffix == ".py" else {}
    return script, {**told, **words, **source}


def _read(shown: str, script: Path, label: Label, library: str) -> Read:
    """The answers of the program about one launch."""
    box = ["--gpus", GPUS, "--host-ram", HOST_RAM, *(["--lib", library] if library else [])]
    libraries = (library,) if library else ()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "train.log")
        log.write_text(LOGS["gpu"])
        for argv in (
            ["settings", str(script)],
            ["estimate", str(script), *box, "--format", "json"],
            ["diagnose", str(script), "--log", str(log), *box, "--answer", "phase=actor_update", "--format", "json"],
        ):
            code, out, said = _run(argv)
            crash = json.loads(out)["crash"]["verdict"] if argv[0] == "diagnose" and code in DONE else "oom"
            if code not in DONE or crash != "oom":
                failed.append(f"{argv[0]}: exit {code}, {crash} {said[-120:]}")
        state = open_session(SessionRequest(script, (), GPUS, host_ram=HOST_RAM, libraries=libraries, planned=False))
    run = state.run
    unread = any("which is not known here" in one for one in state.ledger.missing)
    backend = "unread" if unread else run.mechanics.trainer
    unknown = tuple(one.key for one in run.unknown_keys)
    return Read(shown, label, run.framework, run.algorithm, backend, unknown, tuple(failed))


def _run(argv: Sequence[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(argv)
    return code, out.getvalue(), " ".join(err.getvalue().split())


def right_share(read: Sequence[Read]) -> float:
    """The part of the examples of which framework, method and backend are all upstream's."""
    return sum(not one.wrong() for one in read) / len(read) if read else 0.0


def main() -> int:
    """Print what is not as upstream says, and the counts; 1 where less than 98 % are right or a command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=Path, required=True, help="checkouts, each named MIRROR@REVISION")
    parser.add_argument("--write", action="store_true", help="keep the counts in examples_read.yaml")
    parser.add_argument("--lib", action="append", default=[], help="NAME=VERSION, of the framework")
    parser.add_argument("which", nargs="*", help="FRAMEWORK or FRAMEWORK@REVISION; all that are there by default")
    given = parser.parse_args()
    versions = dict(one.split("=") for one in given.lib)
    poor, kept = False, yaml.safe_load(READ.read_text()) if READ.exists() else {}
    for name, about in yaml.safe_load(EXAMPLES.read_text()).items():
        for tree in sorted(given.trees.glob(f"{about['mirror']}@*")):
            asked = (name, f"{name}@{tree.name.rpartition('@')[2]}")
            if given.which and not set(asked) & set(given.which):
                continue
            library = f"{name}={versions[name]}" if name in versions else ""
            found = [*read_examples(name, about, tree, library)]
            read = [one for one in found if isinstance(one, Read)]
            print(f"== {tree.name}: {_counted(read)}; {len(found) - len(read)} start no training")
            for one in found:
                print("".join(f"  {line}\n" for line in _told(one)), end="")
            keys = Counter(key for one in read for key in one.unknown)
            print(
                "".join(f"  not understood in {n} examples: {key}\n" for key, n in keys.most_common()),
                end="",
                flush=True,
            )
            poor |= right_share(read) < 0.98 or any(one.failed for one in read)
            rights = {f"{what} right": count for what, count in _rights(read).items()}
            failed, unknown = (
                sum(bool(one.failed) for one in read),
                sorted({key for one in read for key in one.unknown}),
            )
            kept[tree.name] = {"framework": name, "examples": len(read), "apart": len(found) - len(read), **rights}
            kept[tree.name] |= {"failed": failed, "not_understood": unknown}
            kept[tree.name] |= {"wrong": [one.file for one in read if one.wrong()]}
    if given.write:
        READ.write_text("# Written by `python -m tests.real_parsers.examples --write`.\n" + yaml.safe_dump(kept))
    return 1 if poor else 0


def _rights(read: Sequence[Read]) -> dict[str, int]:
    """In how many examples each of the three is upstream's."""
    return {what: sum(what not in one.wrong() for one in read) for what in ("framework", "method", "backend")}


def _counted(read: Sequence[Read]) -> str:
    each = ", ".join(f"{what} {count}/{len(read)}" for what, count in _rights(read).items())
    return f"{each}, all three {right_share(read):.1%}, {sum(bool(one.failed) for one in read)} failed"


def _told(one: Read | str) -> Iterator[str]:
    if isinstance(one, str):
        yield f"apart: {one}"
        return
    if one.wrong():
        label = one.label
        said = f"{one.framework} {one.method} {one.backend}"
        told = f"{label.framework} {'/'.join(label.methods)} {label.backend}"
        yield f"{'+'.join(one.wrong())}: {one.file} is {said}; upstream {told}"
    yield from (f"failed: {one.file}: {said}" for said in one.failed)


if __name__ == "__main__":
    sys.exit(main())
