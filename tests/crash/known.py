"""The shipped signatures, read without the knowledge loader, and a short way to judge a text."""

from pathlib import Path

import msgspec

from advisor.crash.evidence import Crash
from advisor.crash.read import read_text
from advisor.knowledge.schema import Signatures
from tests.plain_yaml import plain_yaml

FILE = Path(__file__).parents[2] / "knowledge" / "signatures.yaml"
SIGNATURES = msgspec.convert(plain_yaml(FILE), Signatures)


def judge(text: str) -> Crash:
    return read_text(text, "run.log", SIGNATURES)
