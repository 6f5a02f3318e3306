"""Writes a Python file that starts commands (`subprocess.run([…])`, `os.system("…")`) as the shell text that does the
same, every literal with its place: lists become arrays, functions functions; what shells have not is not known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from advisor.bash.text import ByteRange, Piece, ShellValue
from advisor.regex import regex
from advisor.script.launcher import find_launcher
from advisor.script.python_parser import parsed_words
from advisor.script.python_tree import called, calls, every, text
from advisor.script.python_words import Parts, Words, of_environment, quote, quoted, ran

LoadModule = Callable[[str], "tuple[int, bytes] | None"]
"""A file by its name → number and bytes of its document; None where it is not found."""

_STARTS = regex(
    r"(?:subprocess\.|sp\.|asyncio\.)?(?:run|call|check_call|check_output|getoutput|Popen|create_subprocess_\w+)\Z"
    r"|os\.(?:system|popen|exec\w+|spawn\w+)\Z"
)
_WHOLE = ("system", "popen", "getoutput", "create_subprocess_shell")
"""Calls that are handed shell text."""
_SHOWS = {
    "print", "log", "info", "debug", "warning", "error", "critical", "exception", "echo", "ArgumentParser",
    "add_argument",
}  # fmt: skip
_SAME = {
    "dedent", "strip", "lstrip", "rstrip", "str", "Path", "resolve", "absolute", "abspath", "expanduser", "realpath",
    "fspath", "expandvars", "int", "float", "quote", "list", "tuple", "sorted", "encode", "copy",
}  # fmt: skip
"""Calls that give what they are handed, or are a method of."""
_CHANGES = ("insert", "pop", "remove", "clear", "sort", "reverse", "__setitem__", "__delitem__")
"""Methods of a list after which nobody knows it here."""
_REMOTE = ("remote", "spawn", "local", "call", "run")
"""Methods by which Modal and Ray call a function elsewhere."""
_SAVES = regex(r"\w*(?:dump|save|write|copy|move|rename|replace|link|to_(?:yaml|json|file))\w*\Z")
"""Calls after which a file that they are handed holds nobody knows what."""
_SCRIPT = regex(r"\s*#!.*sh\b")
_TRAINING = regex(rb"^(?:import|from) (?:torch|transformers|trl|peft|vllm)\b", re.MULTILINE)
"""A module that trains: it starts nothing, and no constants of a command stand in it."""
_MOST = 200_000
"""Bytes that are written at most."""


def shell_of_python(
    doc: int, data: bytes, path: str, words: Sequence[ShellValue], load: LoadModule
) -> Iterator[ShellValue]:
    """What a Python file starts when it is given some words, as shell text; then the same with what is handed to calls
    that may write or submit it. Nothing for a file that starts nothing."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for handed in (False, True):
            writer = _Writer(words, load, handed)
            writer.file(doc, data, path)
            yield tuple(writer.out)


class _Writer(Words):
    def __init__(self, words: Sequence[ShellValue], load: LoadModule, handed: bool) -> None:
        self.given, self.load, self.handed = words, load, handed
        self.out: list[Piece] = []
        self.size = 0
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.called: set[str] = set()
        self.modules: set[str] = set()
        self.depth = 0
        self.fields: dict[str, dict[str, None]] = {}
        """Name → the fields and keys that are set of it."""
        self.alike: list[tuple[str, str]] = []
        self.taken: list[tuple[str, str]] = []
        """Pairs of names that may be one object: by an assignment, and by a call of the file's own functions."""
        self.named = {"___file__"}
        self.started: set[str] = set()
        """Names of what is started, or is part of it: where else they are handed they are only shown."""

    def file(self, doc: int, data: bytes, path: str) -> None:
        self.write(f"__name=__main__\n___file__={quoted(path)}\n")
        self.module(doc, data)
        runs: dict[str, set[str]] = {
            name: {one.id for one in every(function, ast.Name)} | {one.attr for one in every(function, ast.Attribute)}
            for name, function in self.functions.items()
        }
        starting = {name for name, function in self.functions.items() if any(map(self.is_start, calls(function)))}
        for _ in range(5):
            starting |= {name for name, used in runs.items() if used & starting}
        for name in [one for one in self.functions if one in starting - self.called]:
            if not any(name in runs[other] for other in starting - {name}):
                self.enter(name, ast.Call(ast.Name(name), [], []))  # what Modal runs, click, or another file

    def module(self, doc: int, data: bytes) -> None:
        from advisor.script.python_file import parsed

        outer = getattr(self, "doc", None), getattr(self, "data", None), getattr(self, "tree", None)
        self.doc, self.data, self.tree = doc, data, parsed(data)
        self.functions |= {one.name: one for one in every(self.tree, ast.FunctionDef)}
        self.functions |= {one.name: one for one in every(self.tree, ast.AsyncFunctionDef)}
        for node in every(self.tree, ast.Assign):
            self.alike += [(self.name(node.targets[0]), self.name(one)) for one in (*node.targets, node.value)]
        for call in calls(self.tree):
            for one in (*call.args, *(each.value for each in call.keywords)) if self.is_start(call) else ():
                self.started |= _carried(one)
            function = self.functions.get(self.of_file(call))
            taken = [each for each in function.args.args if each.arg != "self"] if function is not None else []
            self.taken += [(f"_{each.arg}", self.name(one)) for each, one in zip(taken, call.args, strict=False)]
        for node in every(self.tree, ast.Assign) * 4:
            if not self.started.isdisjoint(map(self.name, node.targets)):
                self.started |= _carried(node.value)
            self.started |= {source for name, source in self.taken if name in self.started}
        named = {self.name(one): None for one in every(self.tree, ast.AST) if isinstance(one, ast.expr)}
        for name in [one for one in named if one and one not in self.named]:
            self.write(f"{name}=", self.hole(), "\n")  # what nothing here sets is not known
        self.named.update(named)
        self.block(self.tree.body)
        if outer[2] is not None:
            self.doc, self.data, self.tree = outer  # type: ignore[assignment]

    def write(self, *parts: str | Piece) -> None:
        self.out += [Piece(one.encode("utf-8", "replace")) if isinstance(one, str) else one for one in parts]
        self.size += sum(len(one.text) for one in self.out[-len(parts) :]) if parts else 0
        if self.size > _MOST:
            raise ValueError

    def block(self, body: Sequence[ast.stmt]) -> None:
        self.write(":\n")
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.write(f"_{node.name}() {{\n")
                self.block(node.body)
                self.write("}\n")
            case ast.ClassDef(body=body):
                self.block([one for one in body if not isinstance(one, ast.Expr)])
            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
                self.call(call)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, value)
            case ast.AugAssign(target=target, op=ast.Add(), value=value) if name := self.name(target):
                if isinstance(value, ast.Constant) and isinstance(value.value, (int, float)):
                    self.assign(target, ast.BinOp(ast.Name(name[1:]), ast.Add(), value))
                elif isinstance(value, (ast.Constant, ast.JoinedStr)):
                    self.write(f"{name}+=", *self.word(value), "\n")
                else:
                    self.write(f"{name}+=(", *self.words(value), ")\n")
            case ast.AugAssign(target=target, op=ast.BitOr(), value=value):
                self.update(target, value)
            case ast.Delete(targets=targets):
                for name in {self.name(one.value) for one in targets if isinstance(one, ast.Subscript)} - {""}:
                    self.changed(name)
            case ast.If(test=test, body=body, orelse=orelse):
                self.write("if ", *self.test(test), "\nthen\n")
                self.block(body)
                self.write("else\n")
                self.block(orelse)
                self.write("fi\n")
            case ast.For(target=target, iter=several, body=body) | ast.AsyncFor(target=target, iter=several, body=body):
                single = isinstance(target, ast.Name)
                self.write("for ", self.name(target) if single else "_", " in ", *self.words(several), "\ndo\n")
                for part in () if single else every(target, ast.Name):
                    self.write(f"_{part.id}=", self.hole(), "\n")
                self.block(body)
                self.write("done\n")
            case ast.While(body=body):
                self.write("while [[ ", self.hole(), " ]]\ndo\n")
                self.block(body)
                self.write("done\n")
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self.assign(item.optional_vars or ast.Name("with"), item.context_expr)
                self.block(body)
            case ast.Try(body=body, orelse=orelse, finalbody=last):
                self.block([*body, *orelse, *last])
            case ast.Return(value=value):
                if value is not None:
                    self.assign(ast.Name("_returned"), value)
                self.write("return\n")
            case ast.Raise():
                self.write("exit 1\n")
            case ast.Break() | ast.Continue():
                self.write(type(node).__name__.lower(), "\n")
            case ast.ImportFrom(module=str() as module):
                self.imported(module)
            case ast.Import(names=names):
                for one in names:
                    self.imported(one.name)

    def imported(self, module: str) -> None:
        """A module that lies beside the file: its variables and functions, by their own names."""
        known = module in self.modules or self.depth > 2 or len(self.modules) > 40
        found = None if known else self.load(module.replace(".", "/") + ".py")
        self.modules.add(module)
        if found is not None and not _TRAINING.search(found[1]):
            self.depth += 1
            with suppress(SyntaxError):
                self.write("__name=imported\n")
                self.module(*found)
                self.write("__name=__main__\n")
            self.depth -= 1

    def name(self, node: ast.expr | None) -> str:
        """The variable that a name, a field (`args.lr`) or an entry (`config["lr"]`) becomes; "" for anything else."""
        match node:
            case ast.Name(id=name):
                return f"_{name}"
            case (
                ast.Attribute(value=inner, attr=part)
                | ast.Subscript(value=inner, slice=ast.Constant(value=str() as part))
            ):
                outer, part = self.name(inner), re.sub(r"\W", "_", part)
                if isinstance(inner, ast.Name) and (inner.id in self.modules or inner.id == "self"):
                    return f"_{part}"  # one object of a class, as a rule
                if outer and outer != "_":
                    self.fields.setdefault(outer, {})[part] = None
                return f"{outer}__{part}" if outer else ""
        return ""

    def changed(self, name: str, *, itself: bool = True) -> None:
        """A list is changed in a way that no shell text does: it is not known any more, whatever its name is."""
        group = {name}
        for _ in range(5):
            pairs = [*self.alike, *self.taken] if itself else self.alike
            group |= {one for pair in pairs if all(pair) and group.intersection(pair) for one in pair}
        for one in sorted(group if itself else group - {name}):
            self.write(f"{one}=(", self.hole(), ")\n")

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Subscript(value=inner, slice=at), _ if self.name(inner) and not text(at):
                self.changed(self.name(inner))
                return
            case (ast.Tuple(elts=targets), ast.Tuple(elts=values)) if len(targets) == len(values):
                for one, told in zip(targets, values, strict=True):
                    self.assign(one, told)
                return
            case ((ast.Tuple() | ast.List()), _):
                first = target.elts[0]
                parsed = isinstance(value, ast.Call) and called(value) == "parse_known_args"
                self.call(value) if isinstance(value, ast.Call) and not parsed else None
                for one in every(target, ast.Name):
                    self.write(f"_{one.id}=", self.hole(), "\n")
                if parsed:
                    self.parsed(self.name(first))
                return
            case ast.Subscript(), _ if of_environment(target):
                self.write(f"export {of_environment(target)}=", *self.word(value), "\n")
                return
        name = self.name(target)
        if not name:
            return
        match value:
            case ast.Call() if called(value) in ("parse_args", "parse_known_args", "from_cli"):
                self.parsed(name)
            case ast.Dict() | ast.BinOp(op=ast.BitOr()):
                self.update(target, value, anew=True)
            case ast.Call(keywords=keywords) if called(value) == "dict" or (
                called(value)[:1].isupper() and keywords and not self.is_start(value)
            ):
                self.update(target, value, anew=True)
            case ast.List() | ast.Tuple() | ast.BinOp(left=ast.List()) | ast.BinOp(right=ast.List()):
                self.write(f"{name}=(", *self.words(value), ")\n")
            case ast.Name() | ast.Attribute() | ast.Call():
                words = [*self.words(value)]
                self.write(f"{name}=(", *words, ")\n", f"{name}__all=()\n" * (self.name(value) != name))
                source = "__returned" if isinstance(value, ast.Call) and self.of_file(value) else self.name(value)
                self.copy(name, source)
            case _:
                self.write(f"{name}=", *self.word(value), "\n")
        match target:
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() as part)) if part.isidentifier():
                self.write(f'{self.name(inner)}__all+=("{part}=${{{name}[*]}}")\n')

    def update(self, target: ast.expr, value: ast.expr, *, anew: bool = False) -> None:
        """Entries that a dictionary gets, in their order, or all of it."""
        name, pairs = self.name(target), list(_entries(value))
        if anew and not any(self.name(one) == name for key, one in pairs if key is None):
            self.write(f"{name}__all=()\n")
        for key, one in pairs:
            if text(key):
                self.assign(ast.Subscript(target, key), one)  # type: ignore[arg-type]
            elif key is None and name:
                self.copy(name, self.name(one))

    def copy(self, name: str, source: str) -> None:
        """What has the fields of something else; of a dictionary, `KEY=value` in `…__all`."""
        if source and source != name:
            self.write(f'{name}__all+=("${{{source}__all[@]}}")\n')
        for part in list(self.fields.get(source, ())) if source and source != name else ():
            self.fields.setdefault(name, {})[part] = None
            self.write(f'{name}__{part}=("${{{source}__{part}[@]}}")\n')

    def of_file(self, call: ast.Call) -> str:
        """The file's own function that a call runs, here or elsewhere; "": none."""
        by, name = call.func, called(call)
        if isinstance(by, ast.Attribute) and name in _REMOTE and isinstance(by.value, (ast.Name, ast.Attribute)):
            name = by.value.id if isinstance(by.value, ast.Name) else by.value.attr
        elif (
            name in ("Fire", "run") and name not in self.functions and call.args and isinstance(call.args[0], ast.Name)
        ):
            name = call.args[0].id
        elif isinstance(by, ast.Attribute) and not isinstance(by.value, ast.Name):
            return ""
        return name if name in self.functions else ""

    def answer(self, call: ast.Call, *, several: bool) -> Parts:
        """What a call gives."""
        by, name, spelled = call.func, called(call), ast.unparse(call.func)
        own = by.value if isinstance(by, ast.Attribute) else None
        first = call.args[0] if call.args else own
        if function := self.of_file(call):
            self.enter(function, call)
            return ['"${__returned[@]}"' if several else '"${__returned[*]}"']
        default = self.word(call.args[1]) if name in ("get", "getenv") and len(call.args) > 1 else ()
        if spelled in ("os.environ.get", "os.getenv", "environ.get", "getenv") and text(first):
            return [f"${{{text(first)}" + ":-" * (len(call.args) > 1), *default, "}"]
        if spelled == "os.path.join":
            parts = [[*self.word(one)] for one in call.args]
            return [part for n, one in enumerate(parts) for part in ("/" * (n > 0), *one)]
        if spelled == "os.path.dirname" and first is not None:
            return ['"$(dirname ', *self.word(first), ')"']
        if name == "join" and own is not None and call.args:
            return ['"$(echo ', *self.words(call.args[0]), ')"'] if text(own) in (" ", "") else [self.hole()]
        if name == "split" and first is not None:
            return ["$(echo ", *self.word(own if own is not None and spelled != "shlex.split" else first), ")"]
        if name == "get" and own is not None and text(first) and (holder := self.name(own)):
            return [f"${{{holder}__" + re.sub(r"\W", "_", text(first)) + ":-", *(default or ["''"]), "}"]
        if name == "len" and (listed := self.name(first)):
            return [f'"${{#{listed}[@]}}"']
        if name == "open" and first is not None:
            return self.word(own or first)
        if name in _SAME and first is not None and spelled != "os.environ.copy":
            own = first if call.args or own is None else own
            return self.words(own) if several else self.word(own)
        self.call(call)
        return [self.hole()]

    def enter(self, name: str, call: ast.Call) -> None:
        """Call a function of the file: its parameters are set, then it runs."""
        function = self.functions[name]
        self.called.add(name)
        taken = [one.arg for one in (*function.args.posonlyargs, *function.args.args) if one.arg not in ("self", "cls")]
        defaults = dict(zip(reversed(taken), reversed(function.args.defaults), strict=False))
        by_key = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        defaults |= {one.arg: told for one, told in by_key if told}
        by_name = called(call) in ("Fire", "run") and called(call) != name
        args = [] if by_name else call.args
        stars = [at for at, one in enumerate(args) if isinstance(one, ast.Starred)]
        plain = args[: min([*stars, len(taken)])]
        given = dict(zip(taken, plain, strict=False)) | {each.arg: each.value for each in call.keywords if each.arg}
        spread = len(plain) < min(len(args), len(taken)) or any(each.arg is None for each in call.keywords)
        filled = bool(function.decorator_list) or by_name
        for one in [*taken, *(each.arg for each in function.args.kwonlyargs)]:
            told = given.get(one, None if spread else defaults.get(one))
            if told is not None:
                self.assign(ast.Name(one), told)
            else:
                self.write(f"_{one}=", self.hole(), "\n")
        if (more := function.args.vararg) is not None:
            known = hasattr(call, "lineno") and not (spread and stars)
            words = self.words(ast.Tuple(args[len(taken) :])) if known else [self.hole()]
            self.write(f"_{more.arg}=(", *words, ")\n")
        if (rest := function.args.kwarg) is not None:
            entries = [each for each in call.keywords if each.arg not in taken]
            self.assign(ast.Name(rest.arg), ast.Call(ast.Name("dict"), [], entries))
        if filled and not given:
            self.parsed("", taken)
        self.write(f"_{name}\n")

    def parsed(self, name: str, fields: Sequence[str] = ()) -> None:
        """What argparse or click make of the words of the command."""
        for one, value in parsed_words(self.tree, self.given, fields):
            if name:
                self.fields.setdefault(name, {})[one] = None
            told = self.words(value) if isinstance(value, ast.expr) else [p for word in value for p in quote(word)]
            self.write(f"{name}__{one}=(" if name else f"_{one}=(", *told, ")\n")

    def is_start(self, call: ast.Call) -> bool:
        return _STARTS.match(ast.unparse(call.func)) is not None

    def call(self, call: ast.Call) -> None:
        """A call for what it does."""
        by, name, spelled = call.func, called(call), ast.unparse(call.func)
        own = self.name(by.value) if isinstance(by, ast.Attribute) else ""
        if self.of_file(call):
            self.enter(self.of_file(call), call)
        elif self.is_start(call):
            self.start(call, name)
        elif name in ("append", "extend") and own and call.args:
            self.write(f"{own}+=(", *(self.word if name == "append" else self.words)(call.args[0]), ")\n")
            self.changed(own, itself=False)
        elif name in _CHANGES and own:
            self.changed(own)
        elif name in ("write", "write_text") and isinstance(by, ast.Attribute) and call.args:
            self.write("_written=", *self.word(call.args[0]), "\ncat >> ", *self.word(by.value))
            self.write(" <<EOF\n${_written[*]}\nEOF\n")
            if self.handed:
                self.hand(call.args[0])
        elif _SAVES.match(name) or any(each.arg == "file" for each in call.keywords):
            into = call.args if "copy" not in name else call.args[-1:]
            for one in (*into, *(each.value for each in call.keywords), getattr(by, "value", None)):
                self.write("cat > ", *self.word(one), " <<EOF\n", self.hole(), "\nEOF\n")
        elif name in ("setdefault", "putenv") and len(call.args) == 2 and spelled.startswith("os."):
            self.assign(ast.Subscript(ast.Attribute(ast.Name("os"), "environ"), call.args[0]), call.args[1])
        elif name == "update" and isinstance(by, ast.Attribute):
            self.update(by.value, call)
        else:
            for one in [*call.args, *(each.value for each in call.keywords), getattr(by, "value", call.func)]:
                if (inner := ran(one)) is not None:
                    self.call(inner)
                elif self.handed and name not in _SHOWS and one is not getattr(by, "value", by):
                    self.hand(one)
            self.write("exit\n" * (name == "exit" or spelled == "os._exit"))

    def start(self, call: ast.Call, name: str) -> None:
        """A command that is started, in the environment and the folder that it is given."""
        named = {each.arg: each.value for each in call.keywords}
        first = call.args[0] if call.args else named.get("args")
        if first is None:
            return
        env, folder = self.name(named.get("env")), named.get("cwd")
        if isinstance(named.get("env"), (ast.Dict, ast.Call, ast.BinOp)):
            env = "_handed"
            self.assign(ast.Name("handed"), named["env"])
        if folder is not None:
            self.write("(cd ", *self.word(folder), "\n")
        given = [f'env "${{{env}__all[@]}}" '] if env else []
        shell = named.get("shell")
        if name in _WHOLE or (isinstance(shell, ast.Constant) and shell.value):
            self.write(*given, "bash -c ", *self.word(first), *self.ending(first), "\n")
        else:
            begins = {"exec": 1, "spaw": 1, "crea": 0}.get(name[:4])
            line = [first] if begins is None else call.args[begins:]
            words = [part for one in line for part in (*self.words(one), " ")]
            self.write(*given, *words, "\n")
        self.write(")\n" * (folder is not None))

    def told(self, node: ast.expr) -> list[ast.expr]:
        """What a name is set to in the file; any other expression itself."""
        several = (one.value for one in every(self.tree, ast.Assign) if self.name(node) in map(self.name, one.targets))
        return [*several] if isinstance(node, ast.Name) else [node]

    def ending(self, node: ast.expr) -> Parts:
        """A blank for the quote that ends an f-string which is a command: a word more goes before it."""
        told = self.told(node)
        if len(told) != 1 or not isinstance(told[0], ast.JoinedStr):
            return []
        at = self.span(told[0])[1]
        at -= 3 if self.data[at - 3 : at] in (b'"""', b"'''") else 1
        return ["'", Piece(b" ", ByteRange(self.doc, at, at + 1, "nested")), "'"]

    def hand(self, node: ast.expr) -> None:
        """A command that a call is handed which may write it into a file, or have it run."""
        for one in self.told(node)[:1] if self.started.isdisjoint(_carried(node)) else ():
            spelled = [*filter(None, map(text, every(one, ast.Constant)))]
            whole = "".join(spelled)
            if isinstance(one, ast.List) and (found := find_launcher(spelled)) and found.trains:
                self.write(*self.words(node), "\n")
            elif not isinstance(one, (ast.List, ast.Dict, ast.Tuple)) and (_SCRIPT.match(whole) or _trains(whole)):
                self.write("bash -c ", *self.word(node), "\n")


def _entries(value: ast.expr) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """Key and value of a dictionary's entries, in their order; no key: all those of another one."""
    pairs: Sequence[tuple[ast.expr | None, ast.expr]] = ()
    match value:
        case ast.Dict(keys=keys, values=values):
            pairs = [*zip(keys, values, strict=True)]
        case ast.Call(func=ast.Attribute(attr="copy", value=inner)):
            pairs = [(None, inner)]
        case ast.Call(args=args, keywords=named):
            pairs = [(None, one) for one in args]
            pairs += [(ast.Constant(one.arg) if one.arg else None, one.value) for one in named]
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            pairs = [(None, left), (None, right)]
        case _:
            yield None, value
    for key, one in pairs:
        yield from [(key, one)] if key is not None else _entries(one)


def _carried(node: ast.expr) -> set[str]:
    """The variables whose words are among those of an expression."""
    others = (call for call in calls(node) if called(call) not in (*_SAME, "join", "split", "chain"))
    apart = [each for call in others for each in every(call, ast.Name)]
    return {f"_{one.id}" for one in every(node, ast.Name) if one not in apart}


def _trains(lines: str) -> bool:
    """Whether a line of a text starts a training."""
    found = map(find_launcher, map(str.split, re.split(r"[\n;|]|&&", re.sub(r"\\\r?\n", " ", lines))))
    return any(one is not None and one.trains for one in found)
