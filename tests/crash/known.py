"""The shipped signatures, and a short way to judge a text."""

from advisor.crash.evidence import Crash
from advisor.crash.read import read_text
from advisor.knowledge.load import load_knowledge

SIGNATURES = load_knowledge().signatures


def judge(text: str) -> Crash:
    return read_text(text, "run.log", SIGNATURES)
