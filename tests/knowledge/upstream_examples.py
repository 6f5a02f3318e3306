"""Reads the examples of a framework as launches: is each known, how does it train, which keys are not understood?"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from advisor.hostile import clean
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework
from advisor.machine.describe import described
from advisor.run.build import RunInputs, build_run
from advisor.run.dialect import recognise
from advisor.script.document import ScriptError
from advisor.script.reader import read_script
from tests.knowledge.upstream import Mirror

_TEXTS = ("*.sh", "*.yaml", "*.yml", "*.json", "*.toml", "*.env")


def tried_examples(dialect: Framework, mirror: Mirror, tag: str, patterns: Sequence[str]) -> Iterator[str]:
    """How many examples are known and how they train, each that is not known, the keys that nobody understood."""
    if not patterns:
        return
    knowledge = load_knowledge()
    machine = described(knowledge.gpus, gpus="8xH100-80GB", host_ram="2000GB")
    parts = {one.framework: one.part_of for one in knowledge.frameworks}
    seen, keys, strangers = Counter[str](), Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in mirror.texts(tag, _TEXTS):
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for file in sorted({file for pattern in patterns for file in Path(folder).glob(pattern)}):
            try:
                script = read_script(file)
            except ScriptError as error:
                strangers.append(str(error))
                continue
            text = clean(script.documents[0].data.decode("utf-8", "replace"))
            for launch in script.launches:
                known = recognise(launch, text, (), {}, {}, knowledge.frameworks, (), file)
                run = build_run(RunInputs(known, launch, machine, knowledge.models)).run
                seen[f"{run.framework} {run.algorithm} {run.mechanics.trainer}"] += 1
                keys.update(one.key for one in run.unknown_keys)
                if dialect.framework not in (run.framework, parts.get(run.framework)):
                    strangers.append(f"{file.relative_to(folder)} is {run.framework} here")
    yield "examples: " + (", ".join(f"{count} {what}" for what, count in seen.most_common()) or "none found")
    yield from (f"example {stranger}" for stranger in strangers)
    yield from (f"not understood in {count} examples: {key}" for key, count in keys.most_common())
