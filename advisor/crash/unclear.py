"""Says why a log proves nothing, and what would settle it: a cut traceback, a failure in unknown words, or silence."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.crash.lines import LogLine
from advisor.crash.phase import PhaseRules, ProgressLine, over_at
from advisor.crash.tracebacks import Trace
from advisor.crash.verdict import Judgement
from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.redact import redact
from advisor.regex import regex
from advisor.words import PHASE_TITLES

_QUOTED = 100
"""Characters of a line that are quoted."""
_FAILS = regex(
    r"(?i)(?a:\boom\b)|\bout[- ]of[- ]memory\b|\b(?:return|exit)[ _]?(?:code|status)\W{1,4}-?[1-9]|"
    r"(?<!\b0 )(?<!\bno )\b(?:errors?|exception|fatal|abort(?:ed)?(?![ _]requests?\b)|crash(?:ed|es)?|killed)\b|"
    r"\b\w+(?:Error|Exception)\b|报错|错误|崩溃|异常|失败"
)
"""Words of a failure, whatever else a line says."""
_CUT_OFF = (
    mark("The rest of the log: the last lines of the process that failed first."),
    mark("In a Ray session's logs folder, the .err file of the worker that died."),
)


def why_unclear(
    judgement: Judgement, trace: Trace, lines: Iterable[LogLine], last: ProgressLine | None, rules: PhaseRules
) -> tuple[str, tuple[str, ...]]:
    """Why the verdict is unclear, and what would settle it or, where it is clear, test a line that may deceive. `last`:
    the last mark of progress."""
    if judgement.verdict != "unclear":
        return "", judgement.cause.find.signature.settle_by if judgement.cause else ()
    if judgement.because:
        return judgement.because, judgement.settle_by
    cut_off = tuple(say(text) for text in _CUT_OFF)
    if trace.frames:
        return say("the log ends inside a traceback, before the line that says what failed"), cut_off
    failing = [line for line in lines if _FAILS.search(line.text)]
    if failing:
        told = {"line": failing[-1].number, "text": clean_line(redact(failing[-1].printed.strip()), _QUOTED)}
        return say("line {line} speaks of a failure in words that prove nothing here: {text}", **told), cut_off
    if last is not None and (over := over_at(last, rules)) != "unknown":
        told = {"phase": PHASE_TITLES[over], "line": last[0].number}
        because = say(
            "the part given ends before any error, where {phase} was over (line {line}); send what follows it", **told
        )
        return because, cut_off
    return say("the log shows neither a crash nor the end of a run"), cut_off
