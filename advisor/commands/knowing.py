"""The knowledge a command works with: ours, and the user's own over it."""

from __future__ import annotations

import argparse
from pathlib import Path

from advisor.commands.streams import tell, usable
from advisor.knowledge import Knowledge, open_knowledge
from advisor.language import say


def knowledge_of(parsed: argparse.Namespace) -> Knowledge:
    """Ours and what was given with --knowledge; what of that is refused is told. Raises Refusal."""
    knowledge = usable(lambda: open_knowledge([Path(folder) for folder in parsed.knowledge]))
    for sentence in knowledge.refused:
        tell(say("left out of your knowledge: {reason}", reason=sentence))
    return knowledge
