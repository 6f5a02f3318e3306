"""Says why a Python program would not take an option where it stands in the command: by its own argparse parser."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct

from advisor.bash.text import Piece, ShellValue, cut, joined
from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.regex import regex
from advisor.script.python_tree import called, calls, every, text

_REST = ("...", "A...", "REMAINDER", "PARSER")
"""`nargs` of an argument that takes all that is left as it is, as argparse calls it and as it is."""
_GATHERS = ("append", "append_const", "extend", "count")
"""Actions that add to what was given before."""
_FALSE = ("false", "0", "no", "off", "none")
_NUMBERS = {
    "int": regex(r"\s*[-+]?\d+(?:_\d+)*\s*\Z"),
    "float": regex(r"\s*[-+]?(?:(?:[\d_]+\.?[\d_]*|\.\d+)(?:[eE][-+]?\d+)?|inf|nan)\s*\Z"),
}


class _ParserOption(Struct, frozen=True):
    names: tuple[str, ...]
    """Without dashes, as fields are spelled."""
    owner: str
    """The subcommand that has it; "": the program itself."""
    call: ast.Call
    dest: str
    """The field that it fills, where that has another name."""

    @property
    def field(self) -> str:
        return self.dest or self.long

    @property
    def long(self) -> str:
        words = [*filter(None, map(text, self.call.args))]
        return _bare(next((word for word in words if word.startswith("--")), next(iter(words), "")).partition("/")[0])

    def told(self, name: str) -> ast.expr | None:
        return next((keyword.value for keyword in self.call.keywords if keyword.arg == name), None)


def refuses(tree: ast.Module, key: str, value: str | tuple[str, ...], words: Sequence[str | None]) -> str:
    """Why a program stops at an option, or gathers it, in a sentence; "" where nothing speaks against it.

    `words`: those of the command once the option stands in it.
    """
    name, owners = key.lstrip("-").replace("-", "_"), _owners(tree)
    options = [*options_of(tree, owners)]
    named = [option for option in options if name in option.names]
    same = {each for option in named for each in option.names}
    mine = [at for at, word in enumerate(words) if word is not None and word[:1] == "-" and _bare(word) in same]
    chosen = {owner: words.index(owner) for owner in owners.values() if owner and owner in words}
    sub = min(chosen, key=lambda owner: chosen[owner], default="")
    if not named:
        return ""
    told = {"key": clean_line(key), "command": clean_line(sub)}
    here = [option for option in named if option.owner == sub] or [option for option in named if not option.owner]
    if not here:
        return say("{key} is an option of {other}, not of {command}.", other=clean_line(named[0].owner), **told)
    if sub and not here[0].owner and any(at > chosen[sub] for at in mine):
        return say("{key} is an option of the program itself: set it before {command}.", **told)
    exclusive = {
        ast.unparse(target)
        for node in every(tree, ast.Assign)
        if isinstance(node.value, ast.Call) and called(node.value) == "add_mutually_exclusive_group"
        for target in node.targets
    }
    groups = {id(option): ast.unparse(getattr(option.call.func, "value", option.call)) for option in options}
    rivals = [one for one in options if groups[id(one)] == groups[id(here[-1])] in exclusive and one not in here]
    for word in words:
        if word is not None and word[:1] == "-" and any(_bare(word) in one.names for one in rivals):
            return say("{key} and {other} exclude each other: change both by hand.", other=clean_line(word), **told)
    counts = [count for option in options if (count := option.told("nargs")) is not None]
    rest = any((text(count) or ast.unparse(count).rpartition(".")[2]) in _REST for count in counts)
    if rest and _behind_a_word(words, mine):
        return say("The program takes what stands behind its own options as it is: set {key} before it.", **told)
    return _refuses_value(here[-1], told["key"], value, len(mine))


def _refuses_value(option: _ParserOption, key: str, value: str | tuple[str, ...], times: int) -> str:
    given = option.told("default")
    filled = isinstance(given, (ast.List, ast.Tuple)) and bool(given.elts)
    if not any(word[:1] == "-" for word in map(text, option.call.args)):
        return say("{key} is told by its place in the command: change it there by hand.", key=key)
    if text(option.told("action")) in _GATHERS and (times > 1 or filled or text(option.told("action")) == "count"):
        return say("{key} adds to what was given before: change it by hand.", key=key)
    texts = (value,) if isinstance(value, str) else value
    choices = option.told("choices")
    kind = option.told("type")
    match kind:
        case ast.Call(args=[ast.List() | ast.Tuple() as choices]) if called(kind) == "Choice":
            pass
        case ast.Call() if called(kind) in ("IntRange", "FloatRange"):
            ends = [*kind.args, *(k.value for k in kind.keywords if k.arg in ("min", "max"))]
            low, high = [*(real(ast.unparse(one)) for one in ends), None, None][:2]
            numbers = [number for number in map(real, texts) if number is not None]
            if any((low is not None and n < low) or (high is not None and n > high) for n in numbers):
                return say("{key} takes one of {choices}.", key=key, choices=f"{low} … {high}")
    listing = choices.elts if isinstance(choices, (ast.List, ast.Tuple, ast.Set)) else []
    known = [str(one.value) for one in listing if isinstance(one, ast.Constant)]
    if known and len(known) == len(listing) and not set(texts) <= {*known}:
        return say("{key} takes one of {choices}.", key=key, choices=listed(clean_line(one, 40) for one in known))
    if isinstance(kind, ast.Name) and kind.id == "bool" and any(one.lower() in _FALSE for one in texts):
        return say("{key} takes any text for true (type=bool): change it in the file.", key=key)
    shape = _NUMBERS.get(kind.id) if isinstance(kind, ast.Name) else None
    wrong = [text for text in texts if shape is not None and not shape.match(text)]
    if wrong and isinstance(kind, ast.Name):
        told = {"key": key, "kind": kind.id, "value": clean_line(wrong[0], 40)}
        return say("{key} takes a number of type {kind}, which {value} is not.", **told)
    count = option.told("nargs")
    if isinstance(count, ast.Constant) and isinstance(count.value, int) and count.value != len(texts):
        return say("{key} takes {count} values.", key=key, count=count.value)
    return ""


def parsed_words(
    tree: ast.Module, words: Sequence[ShellValue], fields: Sequence[str] = ()
) -> Iterator[tuple[str, ast.expr | Sequence[ShellValue]]]:
    """Fields and what argparse or click make of them by default, then what words of a command give, in order. `fields`:
    more names that may be given."""
    options = [*options_of(tree, {})]
    by_name = {each: one for one in options for each in one.names}
    loose = [one.field for one in options if not any(word[:1] == "-" for word in map(text, one.call.args))]
    for option in options:
        switch = _takes_none(option)
        yield (
            option.field,
            option.told("default") or ast.Constant(str(text(option.told("action")) == "store_false") if switch else ""),
        )
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        flag, equals, _ = joined(word).decode("utf-8", "replace").partition("=")
        bare = _bare(flag)
        given = by_name.get(bare) or by_name.get(bare.removeprefix("no_"))
        behind = (cut(word, len(flag.encode()) + 1),)
        if not flag.startswith("-"):
            if equals and bare.isidentifier():
                yield bare, behind
            elif loose:
                yield loose.pop(0), (word,)
        elif given is None and bare not in fields:
            continue
        elif equals:
            yield (given.field if given else bare), behind
        elif given is not None and _takes_none(given):
            on = text(given.told("action")) != "store_false" and (bare == given.field or not bare.startswith("no_"))
            yield given.field, ((Piece(str(on).encode()),),)
        else:
            many = given is not None and given.told("nargs") is not None
            end = at if many else at + 1
            while many and end < len(words) and not joined(words[end]).startswith(b"-"):
                end += 1
            yield (given.field if given else bare), words[at:end]
            at = end


def _takes_none(option: _ParserOption) -> bool:
    action = option.told("action")
    return option.told("is_flag") is not None or (
        action is not None and text(action) not in ("store", "append", "extend")
    )


def names_of(tree: ast.Module) -> frozenset[str]:
    """Every name by which an option of the file's parsers goes."""
    return frozenset(name for option in options_of(tree, _owners(tree)) for name in option.names)


def switches_of(tree: ast.Module, key: str) -> dict[str, tuple[str, ...]] | None:
    """What options of argparse or click that take no value set a field to, in lower case, each with the words for it;
    () is what holds without any. None where an option with a value fills the field, or nothing does."""
    name, options = _bare(key), [*options_of(tree, {})]
    named = [option for option in options if name in (option.dest, *option.names)]
    field = next((option.field for option in named), "")
    filling = [option for option in options if option.field == field] if named else []
    found: dict[str, tuple[str, ...]] = {}
    for option in filling:
        if not (sets := _sets(option)):
            return None
        standard = option.told("default")
        first = next(iter(sets))
        if isinstance(standard, ast.Constant):
            found = {str(standard.value).lower(): (), **found}
        elif standard is None and sets.keys() <= {"true", "false"} and len(sets) == 1:
            found = {"false" if first == "true" else "true": (), **found}
        if name != field and name in option.names and len(filling) == 1:
            return {"true": sets[first], "false": ()}  # asked is the option itself: `--no-x`, which sets x
        found |= sets
    return found or None


def _sets(option: _ParserOption) -> dict[str, tuple[str, ...]]:
    """Value → the option's words that set it, long ones first; {} for one that takes a value."""
    words = sorted((word for word in map(text, option.call.args) if word[:1] == "-"), key=lambda word: word[:2] != "--")
    action, flag, const = option.told("action"), option.told("is_flag"), option.told("const")
    if any("/" in word for word in words):  # click
        pairs = [word.partition("/") for word in words]
        return {"true": tuple(yes.strip() for yes, _, _ in pairs), "false": tuple(no.strip() for _, _, no in pairs)}
    match text(action) or (ast.unparse(action).rpartition(".")[2] if action is not None else ""):
        case "store_true":
            return {"true": (*words,)}
        case "store_false":
            return {"false": (*words,)}
        case "store_const" if isinstance(const, ast.Constant):
            return {str(const.value).lower(): (*words,)}
        case "BooleanOptionalAction":
            return {"true": (*words,), "false": tuple(f"--no-{word[2:]}" for word in words if word[:2] == "--")}
    return {"true": (*words,)} if isinstance(flag, ast.Constant) and flag.value is True else {}


def spellings(tree: ast.Module, key: str) -> tuple[str, ...]:
    """The options that fill a field, as the command gives them: "--micro-batch", where they are not called as it is."""
    name = _bare(key)
    found = [option for option in options_of(tree, {}) if name in (option.dest, *option.names)]
    flags = [word for option in found for word in map(text, option.call.args) if word.startswith("-")]
    return tuple(sorted(flags, key=lambda word: not word.startswith("--"))) if f"--{name}" not in flags else ()


def _owners(tree: ast.Module) -> dict[str, str]:
    """Name of a parser, a group or a function that is a command → the subcommand it belongs to."""
    owners: dict[str, str] = {}
    sets = [node for node in every(tree, ast.Assign) if isinstance(node.value, ast.Call)]
    for node in sorted(sets, key=lambda node: node.lineno):
        call = node.value
        assert isinstance(call, ast.Call)
        parent = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        for target in node.targets:
            if called(call) == "add_parser" and call.args:
                owners[ast.unparse(target)] = text(call.args[0])
            elif called(call) in ("add_argument_group", "add_mutually_exclusive_group"):
                owners[ast.unparse(target)] = owners.get(parent, "")
    commands = [node for node in every(tree, ast.FunctionDef) if _decorated(node, "command")]
    for function in commands if len(commands) > 1 else ():
        named = [call.args for call in _decorated(function, "command") if isinstance(call, ast.Call)]
        own = next((text(args[0]) for args in named if args), "")
        owners[f"def {function.name}"] = own or function.name.replace("_", "-")
    return owners


def _decorated(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    """The decorators of a function that go by a name: click's and typer's."""
    return [each for each in function.decorator_list if ast.unparse(each).partition("(")[0].rpartition(".")[2] == name]


def options_of(tree: ast.Module, owners: dict[str, str]) -> Iterator[_ParserOption]:
    """The options of argparse and click. `owners`: name of a parser → the subcommand it belongs to."""
    for call in calls(tree, "add_argument"):
        yield _option(
            call, owners.get(ast.unparse(call.func.value), "") if isinstance(call.func, ast.Attribute) else ""
        )
    for function in every(tree, ast.FunctionDef):
        told = (call for call in _decorated(function, "option") if isinstance(call, ast.Call))
        yield from (_option(call, owners.get(f"def {function.name}", "")) for call in told)


def _option(call: ast.Call, owner: str) -> _ParserOption:
    dest = [text(keyword.value) for keyword in call.keywords if keyword.arg == "dest"]
    names = tuple(_bare(word.strip()) for words in map(text, call.args) if words for word in words.split("/"))
    return _ParserOption(names, owner, call, _bare(dest[0]) if dest else "")


def _bare(word: str) -> str:
    return word.partition("=")[0].lstrip("-").replace("-", "_")


def _behind_a_word(words: Sequence[str | None], mine: Sequence[int]) -> bool:
    """Whether an option stands behind an argument that is neither an option nor, as far as can be seen, its value."""
    loose = [
        at
        for at, word in enumerate(words)
        if at and word is not None and not word.startswith("-") and not (words[at - 1] or "").startswith("-")
        and not word.endswith(".py")
    ]  # fmt: skip
    program = next((at for at, word in enumerate(words) if word is not None and word.endswith(".py")), 0)
    return any(program < other < at for at in mine for other in loose)


def real(text: str) -> float | None:
    """A text as a number; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None
