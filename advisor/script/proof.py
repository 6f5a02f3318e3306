"""Proves an edit: reads the new bytes again and compares them with what was wanted."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence

from msgspec import Struct

from advisor.bash.parses import parsed_by_bash
from advisor.hostile import clean_line
from advisor.language import clauses, mark, say
from advisor.script.blocks import shell_in
from advisor.script.config_files import PREFIXES
from advisor.script.document import EditRefused, EditRequest, Rewrite, ScriptError, Value, apply_edits, without_dashes
from advisor.script.environment_edit import job_option
from advisor.script.keyed import EMPTY
from advisor.script.launch import Launch, Script, one_training
from advisor.script.python_parser import real
from advisor.script.reader import FOLLOWED, read_again

_UNSET = object()
_TRUTH = {"True": "true", "False": "false", "None": "null", "none": "null"}


class Difference(Struct, frozen=True):
    """What an edit did that it should not, or did not that it should. `wanted`: it was asked for."""

    says: str
    wanted: bool = False
    sentence: bool = False
    """Whether it tells by itself why nothing is changed, and what to do."""


class Check(Struct, frozen=True):
    """One thing that was checked. `held` None: it could not be checked here."""

    what: str
    held: bool | None
    detail: str = ""


def check(
    script: Script, launch_index: int, wanted: Sequence[EditRequest], rewrites: Sequence[Rewrite]
) -> tuple[Check, ...]:
    """Read the new bytes and say what holds: read back equal, nothing else moved, line endings kept, syntax valid."""
    problems, _ = differences(script, launch_index, wanted, rewrites)
    missing = [problem.says for problem in problems if problem.wanted]
    moved = [problem.says for problem in problems if not problem.wanted]
    return (
        Check(say("read back equal to the plan"), not missing, clauses(missing)[:500]),
        Check(say("nothing else moved"), not moved, clauses(moved)[:500]),
        *sound(rewrites),
    )


def sound(rewrites: Sequence[Rewrite]) -> tuple[Check, ...]:
    """What holds of the new bytes by themselves: line endings kept, syntax valid."""
    return (_endings(rewrites), *(_syntax(item) for item in rewrites))


def _endings(rewrites: Sequence[Rewrite]) -> Check:
    what = say("line endings kept")
    for item in rewrites:
        old, new = item.document.data, item.new
        windows, shell = b"\r\n" in old and b"\n" not in old.replace(b"\r\n", b""), item.document.kind == "shell"
        if shell and b"\r\n" in old:
            what = say("line endings as bash takes them")
        mixed = b"\r\n" in new if shell else windows and new.count(b"\n") != new.count(b"\r\n")
        if mixed or old.endswith(b"\n") != new.endswith(b"\n"):
            return Check(what, False, clean_line(str(item.document.path)))
        if apply_edits(old, item.edits) != new:
            return Check(what, False, say("the edits do not give the new bytes"))
    return Check(what, True)


def _syntax(item: Rewrite) -> Check:
    """A shell script through `bash -n`, which parses and runs nothing; the others were parsed when they were read."""
    name = clean_line(item.document.path.name)
    if item.document.kind == "python" and _compiles(item.document.data):  # its parser takes an argument twice
        what = say("{file} is well-formed {kind}", file=name, kind=item.document.kind)
        return Check(what, _compiles(item.new))
    if item.document.kind != "shell":
        return Check(say("{file} is well-formed {kind}", file=name, kind=item.document.kind), True)
    before, after = (
        parsed_by_bash(shell_in(item.document.path, data) or data) for data in (item.document.data, item.new)
    )
    if before is None or after is None:
        return Check("bash -n", None, say("bash is not installed here"))
    why = "" if before[0] else say("the original does not pass it either")
    return Check(say("bash -n clean"), after[0] if before[0] else None, why)


def _compiles(data: bytes) -> bool:
    """Whether Python compiles a file; nothing of it runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, "", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return False
    return True


def differences(
    script: Script, launch_index: int, wanted: Sequence[EditRequest], rewrites: Sequence[Rewrite], alone: bool = False
) -> tuple[list[Difference], Script]:
    """What does not come out as wanted, and what else moved (none: the edit is exact), and the script as it is read
    with the new bytes; as it was where they are not well-formed. `alone`: for no other round."""
    try:
        after = read_again(script, rewrites)
    except (ScriptError, EditRefused) as error:
        return [Difference(say("the result is not well-formed: {problem}", problem=error))], script
    out = _moved(script, after, launch_index, wanted, alone)
    if out or not script.by_sh:
        return out, after
    by_dash = read_again(script, (), by_dash=True)
    reached = [one.index for one in by_dash.launches if one.span == script.launches[launch_index].span]
    if not reached:
        never = say("`sh` does not come to this command where it is dash: run it by bash.")
        return [Difference(by_dash.ended or never, sentence=True)], after
    return _moved(by_dash, read_again(script, rewrites, by_dash=True), reached[0], wanted, alone), after


def _moved(
    script: Script, again: Script, launch_index: int, wanted: Sequence[EditRequest], alone: bool
) -> list[Difference]:
    """What differs between two readings beside what is wanted, and what of that does."""
    if len(again.launches) != len(script.launches):
        counts = {"found": len(again.launches), "expected": len(script.launches)}
        return [Difference(say("the result has {found} launches, not {expected}", **counts))]
    out: list[Difference] = []
    if again.others != script.others:
        out.append(Difference(say("a command that is no launch changed")))
    out += [problem for item in wanted if item.kind == "job" for problem in _job_differences(again, item)]
    target, shared = script.launches[launch_index], mates(script, launch_index)
    for old, new in zip(script.launches, again.launches, strict=True):
        rounds = not alone and old.index != launch_index and old.span is not None and old.span == target.span
        before, after = old.environment, new.environment
        given = [  # variables for every launch that reached one which was not asked for
            item for item in wanted
            if item.kind == "environment" and item.everywhere and before.get(item.key) != after.get(item.key)
        ]  # fmt: skip
        if old.index in shared:
            out += _compare(old, new, [*(item for item in wanted if item.kind == "setting"), *given])
        elif rounds:
            out += _compare(old, new, ()) and _compare(old, new, [*_alike(old, target, wanted)])
        else:
            out += _compare(old, new, wanted if old.index == launch_index else given)
    return out


def mates(script: Script, launch_index: int) -> list[int]:
    """The launches that are the same training on other machines."""
    return [one.index for one in script.launches if one_training(script.launches[launch_index], one)]


def _alike(other: Launch, target: Launch, wanted: Sequence[EditRequest]) -> Iterator[EditRequest]:
    """The changes that another round of the same command may get, too: not those of what the rounds differ in."""
    values, own = _values(other), _values(target)
    for item in wanted:
        key = _bare(item.key)
        if item.kind != "setting" or values.get(key, _UNSET) in (own.get(key, _UNSET), item.value):
            yield item


def _job_differences(again: Script, item: EditRequest) -> Iterator[Difference]:
    """What Slurm would read in place of what was wanted."""
    data = again.documents[0].data
    place = job_option(data, item.key)
    found = _UNSET if place is None else data[slice(*place)].decode()
    if found != item.value:
        yield _difference(clean_line(item.key), item.value, found, wanted=True)


def _compare(old: Launch, new: Launch, wanted: Sequence[EditRequest]) -> list[Difference]:
    out: list[Difference] = []
    expected, followers = _expected(old, wanted)
    found = _values(new)
    asked = {_bare(item.key): item for item in wanted if item.kind == "setting"}
    for key in {**expected, **found}:
        before, after = expected.get(key, _UNSET), found.get(key, _UNSET)
        follows = (key in followers and key not in asked) or _of_launcher(key, wanted)
        follows = follows or (before == EMPTY and any(one.startswith(f"{key}.") for one in asked))  # no longer empty
        loose = not old.argv or (key in asked and asked[key].in_file)
        if not follows and not _same(before, after, loose=loose):
            out.append(_difference(clean_line(key), before, after, key in asked))
    out += _compare_environment(old, new, wanted)
    launching = {item.key: item.value for item in wanted if item.kind == "launcher"}
    for changed, before, after in (
        (mark("the program changed"), old.program, new.program),
        (mark("the launcher options changed"), {**old.launcher, **launching}, dict(new.launcher)),
        (mark("the arguments that are no settings changed"), (_rest(old), old.loose), (_rest(new), new.loose)),
    ):
        if before != after:
            out.append(Difference(say(changed)))
    return out


def _of_launcher(key: str, wanted: Sequence[EditRequest]) -> bool:
    """Whether a setting is what the launcher's option says (accelerate's file has it under the same name), or stands in
    the file that an option names.
    """
    named = {item.key.lstrip("-").replace("-", "_"): item.kind for item in wanted}
    head, _, name = key.partition(":")
    beside = {PREFIXES.get(option) for option in named} | ({"accelerate:"} if "config_file" in named else set())
    return f"{head}:" in beside or (head == "accelerate" and named.get(name.rpartition(".")[2]) == "launcher")


def _difference(name: str, expected: object, found: object, wanted: bool) -> Difference:
    values = {"key": name, "expected": _shown(expected), "found": _shown(found)}
    if wanted:
        return Difference(say("wanted {key}: {expected}, got {found}", **values), wanted=True)
    return Difference(say("changed {key}: {expected}, got {found}", **values))


def _same(left: object, right: object, *, loose: bool) -> bool:
    """Equal values. A list of one word is that word, because an option cannot tell them apart; `loose`: in config
    files `true` and `True` are the same, each in its own language.
    """
    a = left[0] if isinstance(left, tuple) and len(left) == 1 else left
    b = right[0] if isinstance(right, tuple) and len(right) == 1 else right
    if loose and isinstance(a, str) and isinstance(b, str):
        return _TRUTH.get(a, a) == _TRUTH.get(b, b) or ((number := real(a)) is not None and number == real(b))
    return a == b


def _expected(old: Launch, wanted: Sequence[EditRequest]) -> tuple[dict[str, Value | None], set[str]]:
    """Values in force after the change, and keys that follow a changed field of a Python file by its own rules."""
    out = _values(old)
    followers: set[str] = set()
    for item in wanted:
        if item.kind != "setting":
            continue
        key = _bare(item.key)
        if item.value is None:
            out.pop(key, None)
        else:
            out[key] = _normal(item.value, out.get(key), key)
        if not old.argv and old.program:
            followers |= {_bare(k) for s in old.settings if _bare(s.key) == key for k in s.shared_with}
            followers |= {_bare(s.key) for s in old.settings if s.span is None}
        followers |= {_bare(s.key) for s in old.settings if key in s.follows}
    return out, followers


def _normal(value: Value, old: Value | None, key: str) -> Value:
    """`key=value` arguments carry a list as one text."""
    listed = isinstance(value, tuple) and isinstance(old, str) and "." in key and value
    return "[" + ",".join(value) + "]" if listed else value


def _values(launch: Launch) -> dict[str, Value | None]:
    return {_bare(s.key): s.value if s.resolved else None for s in launch.settings if s.effective}


def _bare(key: str) -> str:
    """A key without markers, in one spelling, so that an added `--some-key` is the `some_key` that was asked for."""
    return key if key.startswith(FOLLOWED) else without_dashes(key.lstrip("+")).replace("-", "_")


def _shown(value: object) -> str:
    if value is _UNSET:
        return say("not set")
    return say("unknown") if value is None else clean_line(json.dumps(value), 80)


def _compare_environment(old: Launch, new: Launch, wanted: Sequence[EditRequest]) -> list[Difference]:
    expected: dict[str, str] = dict(old.environment)
    for item in wanted:
        if item.kind != "environment":
            continue
        if item.value is None:
            expected.pop(item.key, None)
        elif isinstance(item.value, str):
            expected[item.key] = item.value
    asked = {item.key for item in wanted if item.kind == "environment"}
    found = new.environment
    return [
        _difference(f"${clean_line(name)}", expected.get(name, _UNSET), found.get(name, _UNSET), name in asked)
        for name in {**expected, **found}
        if expected.get(name) != found.get(name)
    ]


def _rest(launch: Launch) -> tuple[str | None, ...]:
    """The words of a command up to its first setting."""
    out: list[str | None] = []
    for word in launch.argv:
        if word is not None and (word.startswith("--") or "=" in word):
            break
        out.append(word)
    return tuple(out)
