"""Draws facts to be looked up again by hand: `python -m tests.knowledge.draw_facts --seed 7`.

Settings, advisories, remedies, crash lines and models, in the shares of an audit.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator

from msgspec import to_builtins

from advisor.knowledge import load_knowledge

SHARES = {"setting": 25, "advisory": 10, "remedy": 10, "signature": 10, "model": 5}


def facts() -> Iterator[tuple[str, str, object]]:
    """Kind, name and content of every fact that has a source."""
    knowledge = load_knowledge()
    for dialect in knowledge.frameworks:
        for key, fact in dialect.settings.items():
            yield "setting", f"{dialect.framework} {key}", fact
    yield from (("advisory", one.id, one) for one in knowledge.advisories)
    yield from (("remedy", one.id, one) for one in knowledge.remedies)
    yield from (("signature", one.id, one) for one in knowledge.signatures.signatures)
    yield from (("model", one.name, one) for one in knowledge.models)


def drawn(seed: int) -> Iterator[tuple[str, str, object]]:
    """The sample of this seed: the same for the same knowledge."""
    by_kind: dict[str, list[tuple[str, str, object]]] = {}
    for fact in sorted(facts(), key=lambda one: one[:2]):
        by_kind.setdefault(fact[0], []).append(fact)
    lot = random.Random(seed)
    for kind, share in SHARES.items():
        yield from lot.sample(by_kind[kind], share)


def main() -> None:
    """Print the sample, a fact a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    for kind, name, content in drawn(parser.parse_args().seed):
        print(f"{kind}\t{name}\t{to_builtins(content, enc_hook=str)}")


if __name__ == "__main__":
    main()
