"""Reads the config files that a launch names, each with all that its `defaults:` name, and reads and edits those that
the script writes itself, from a heredoc or `echo`.

Sources: hydra@2c03d1b hydra/_internal/defaults_list.py:272 (`_self_` counts as last where it is not named);
NVIDIA-NeMo/RL@v0.7.0 nemo_rl/utils/config.py:51 (`defaults: ../base.yaml` names files, relative to the one that does).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.bash.state import LauncherMatch, TracedCommand
from advisor.bash.text import ShellValue, cut, joined, line_at, line_starts, why_unknown
from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.regex import regex
from advisor.script.arguments import read_arguments
from advisor.script.document import (
    Changes,
    Document,
    DocumentKind,
    EditRequest,
    ScriptError,
    Setting,
    Span,
    effective,
    refused,
)
from advisor.script.files import Files, start_of
from advisor.script.keyed import KeyedEntry, empty_tables, read_keyed, read_yaml, settings_of
from advisor.script.keyed_edit import KeyedEditor
from advisor.script.launch import Launch, NotFound
from advisor.script.launcher import is_other_work
from advisor.script.literal import target
from advisor.script.pasted import keyed_lines

_YAML = (".yaml", ".yml")
_KINDS: dict[str, DocumentKind] = {".json": "json", ".toml": "toml"}
OPTIONS = ("--config", "--config_file")
"""Options that name a config file."""
_ACCELERATES = "accelerate:deepspeed_config."
PREFIXES = {
    **dict.fromkeys(("deepspeed", "deepspeed_config", "deepspeed_config_file"), "deepspeed:"), "fsdp_config": "fsdp:",
}  # fmt: skip
"""Option → what stands before the keys of the file that it names."""
INLINED = 3
"""Lines `key: value` in a script that make a config of them (judgement)."""


class Followed(Struct):
    """Settings from files, in order of precedence, the files' paths, and what could not be found."""

    settings: list[Setting] = field(default_factory=list)
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Files that decide the run's own settings and could not be followed."""
    not_found: tuple[NotFound, ...] = ()
    """Files that the launch names and that are not there."""
    chosen: Mapping[str, str] = field(default_factory=dict)


class _Named(Struct, frozen=True):
    """A file that a launch names, with the prefix of its keys and what to call it in a note."""

    key: str
    name: str
    prefix: str = ""
    guessed: bool = False
    """Only the end of its path is known: "$(dirname $0)/run.yaml"."""

    @property
    def whole(self) -> bool:
        """Whether it holds the run's own settings, not those of a launcher or of an overlay of known defaults."""
        return not self.prefix and self.key != "--config-name"

    @property
    def composed(self) -> bool:
        """Whether hydra composes it, called by its own option or by a program's."""
        return self.key.replace("_", "-") == "--config-name"


def follow(
    files: Files,
    launcher: Mapping[str, str],
    own: Sequence[Setting],
    positional: Sequence[str],
    command: TracedCommand,
    base: Path,
    program: str = "",
    unread: Sequence[str] = (),
) -> Followed:
    """Settings of the config files of one launch, `unread` the launcher's options of which no value is known. `own` are
    its command-line settings, `positional` its other arguments, `base` the script's folder, `program` what it runs:
    hydra looks beside that file. A dialect's own meaning of the keys is not known here: the shapes of names decide."""
    out = Followed(chosen=groups(own))
    for named in _named(launcher, own, positional):
        place = posixpath.normpath(posixpath.join(command.folder, named.name.encode("utf-8", "surrogateescape")))
        if (source := command.copies.get(place)) is not None:
            named = replace(named, name=source.decode("utf-8", "surrogateescape"))
        if may_be_written(command, named.name, base):
            out.notes += (say(WRITTEN_BEFORE, file=clean_line(named.name)),)
        written = find_written(command.files, named.name, command.folder)
        if written is None:
            beside = posixpath.dirname(program) if named.composed and program.endswith(".py") else ""
            _read(files, named, base, command.directory, out, beside)
        else:
            _read_written(files, named, written, out)
    follow_linked(files, base, command.directory, out, own)
    told = _by_options(launcher, unread)
    for option, key in (("--num_processes", "accelerate:num_processes"), ("--num_machines", "accelerate:num_machines")):
        if (option in launcher or option in unread) and any(one.key == key for one in out.settings):
            told[key] = Setting(key, launcher.get(option), "command", option in launcher)
    out.settings = [*(one for one in out.settings if one.key not in told), *told.values()]
    return out


_OF_DEEPSPEED = ("zero_stage", "offload_optimizer_device", "offload_param_device")
MUST_AGREE = ("gradient_accumulation_steps", "gradient_clipping")
_OF_FSDP = ("fsdp_sharding_strategy", "fsdp_offload_params", "fsdp_version", "fsdp_state_dict_type")
"""Options of `accelerate launch` that its file has under deepspeed_config and fsdp_config
(huggingface/accelerate@00785cd9 src/accelerate/commands/launch.py)."""


def _by_options(launcher: Mapping[str, str], unread: Sequence[str]) -> dict[str, Setting]:
    """What `accelerate launch` is told of sharding by options, under the keys of its file, which they win over."""
    given = {_bare(key): value for key, value in launcher.items()}
    words: dict[str, str] = {}
    if "use_deepspeed" in given:
        words["distributed_type"] = "DEEPSPEED"
        words["deepspeed_config.zero_stage"] = "2"  # its default
    if "use_fsdp" in given:
        words["distributed_type"] = "FSDP"
    words |= {f"deepspeed_config.{name}": given[name] for name in (*_OF_DEEPSPEED, *MUST_AGREE) if given.get(name)}
    words |= {f"fsdp_config.{name}": given[name] for name in _OF_FSDP if given.get(name)}
    if "deepspeed_config_file" in given and "zero_stage" not in given:
        words.pop("deepspeed_config.zero_stage", None)
    keyed = {f"accelerate:{key}": value for key, value in words.items()}
    told = {key: Setting(key, value, "command") for key, value in keyed.items()}
    lost = [f"accelerate:deepspeed_config.{name}" for name in map(_bare, unread) if name in MUST_AGREE]
    return told | {key: Setting(key, None, "command", False) for key in lost}


WRITTEN_BEFORE = mark("A command before the launch may write {file}: what it holds then is not known.")


_MOST_PROGRAMS = 20
_SAVES = regex(rb"""['"][wa]b?['"]|dump\(|write_(?:text|bytes)\(|\bsave\(|>""")


def may_be_written(command: TracedCommand, name: str, base: Path) -> bool:
    """Whether a command before this one may have written the file of that name: by its words, or by what the program
    that it runs holds, beside the script (`base`)."""
    file = name.encode("utf-8", "surrogateescape")
    if posixpath.normpath(posixpath.join(command.folder, file)) in command.changed:
        return True
    for program in [each for each in command.changed if each.endswith((b".py", b".sh"))][:_MOST_PROGRAMS]:
        read = start_of(base / program.decode("utf-8", "surrogateescape"))
        if posixpath.basename(file) in read and _SAVES.search(read):
            return True
    return False


def follow_linked(files: Files, base: Path, folder: str, out: Followed, own: Sequence[Setting] = ()) -> None:
    """Add what the DeepSpeed and FSDP files say that the config files followed so far name; `own` settings win."""
    taken = {_bare(setting.key) for setting in own}
    for setting in effective(out.settings):
        key = setting.key.removeprefix(_ACCELERATES)
        if not setting.effective or ":" in key or _bare(key) in taken:
            continue
        for named in _named({}, (replace(setting, key=key),), ()):
            beside = Path(setting.span.path).parent if setting.span is not None else base
            near = base if files.candidates(named.name, base, folder) else beside
            if named.prefix:
                _read(files, named, near, folder, out)


def _bare(key: str) -> str:
    return key.lstrip("-").replace("-", "_")


def _named(launcher: Mapping[str, str], own: Sequence[Setting], positional: Sequence[str]) -> Iterator[_Named]:
    for option, name in ((_bare(key), name) for key, name in launcher.items() if name):
        if prefix := {"config_file": "accelerate:", **PREFIXES}.get(option):
            yield _Named(f"--{option}", name, prefix)
    values = {setting.key: setting.value for setting in own if isinstance(setting.value, str)}
    for setting in own:
        ending = setting.ending.lstrip("/")
        if setting.value is None and ending != setting.ending and ending.endswith((*_YAML, ".json")):
            if setting.key in OPTIONS:
                yield _Named(setting.key, ending, guessed=True)
            elif prefix := PREFIXES.get(_bare(setting.key)):
                yield _Named(setting.key, ending, prefix, guessed=True)
    guessed = {setting.key: setting.ending.lstrip("/") for setting in own if setting.ending.startswith("/")}
    overlay = _overlay(values, guessed)
    if overlay:
        yield overlay
    for word in positional:
        if word.endswith((*_YAML, ".json", ".toml")):
            yield _Named("", word)
    for setting in own:  # pydantic-config: `--trainer @ trainer.toml`, the file of a part
        words = setting.value if isinstance(setting.value, tuple) else ()
        if words[:1] == ("@",) and words[1:2] and words[1].endswith(".toml"):
            yield _Named(setting.key, words[1], f"{_bare(setting.key)}.")
    for key, value in values.items():
        bare = _bare(key)
        if bare in ("config", "config_file") and value.endswith((*_YAML, ".json", ".toml")):
            yield _Named(key, value)
        elif (prefix := PREFIXES.get(bare)) and value.endswith(".json"):
            yield _Named(key, value, prefix)


def is_given(files: Files, command: TracedCommand, found: LauncherMatch, base: Path) -> bool:
    """Whether a Python file is given a config that is there: whatever the program is called, it may train."""
    if not found.program.endswith(".py") or is_other_work(found.program):
        return False
    named = (each.value for each in read_arguments(command.fields, found.arguments) if each.key in OPTIONS)
    configs = (name for name in named if isinstance(name, str) and name.endswith(_YAML))
    return any(files.candidates(name, base, command.directory) for name in configs)


_BUILDS = regex(rb"^(?!\s*(?:class|#)).*(?:\b(?:[A-Z]\w*)?Trainer\(|\.backward\(|\bget_peft_model\()", re.MULTILINE)


def is_loop(command: TracedCommand, found: LauncherMatch, base: Path) -> bool:
    """Whether a Python file that is there makes a trainer or has a loop of its own: it trains, whatever its name."""
    name = found.program if found.program.endswith(".py") else found.program.replace(".", "/") + ".py"
    if " " in name or is_other_work(found.program):
        return False
    there = Files().candidates(name, base, command.directory)  # it is no document of the script
    return bool(there) and _BUILDS.search(start_of(there[0])) is not None


def unreadable(launch: Launch, base: Path) -> str:
    """Why a config file that a launch names cannot be loaded, in a sentence; "" where all that are there can."""
    for named in _named(launch.launcher, launch.settings, [word for word in launch.loose if word is not None]):
        files = Files()
        try:
            number = files.find(named.name, base, _KINDS.get(posixpath.splitext(named.name)[1], "yaml"), launch.folder)
            if number is not None:
                read_keyed(files.documents[number])
        except ScriptError as error:
            return str(error)
    return ""


def named_file(launch: Launch, prefix: str) -> str | None:
    """The name of the file that gives a launch its keys with this prefix."""
    found = [named.name for named in _named(launch.launcher, launch.settings, ()) if named.prefix == prefix]
    return found[-1] if found else None


def _overlay(values: Mapping[str, str], guessed: Mapping[str, str]) -> _Named | None:
    """Hydra's `--config-path` and `--config-name`, or a program's `--config_path` and `--config_name`, which know no
    defaults of a framework's own. `guessed`: options of which only the end of the path is known."""
    for key, short, folders in (
        ("--config-name", "-cn", ("--config-path", "-cp", "--config-dir", "-cd")),
        ("--config_name", "", ("--config_path", "--config_dir")),
    ):
        if name := values.get(key) or values.get(short):
            told = {**guessed, **values}
            option = next((option for option in folders if told.get(option)), "")
            name = name if name.endswith(_YAML) else name + ".yaml"
            return _Named(key, f"{told[option]}/{name}" if option else name, guessed=option in {*guessed} - {*values})
    return None


def groups(own: Sequence[Setting]) -> dict[str, str]:
    """What the words of a command may choose of hydra's groups: `trainer=grpo`."""
    return {one.key: one.text for one in own if one.origin == "command" and one.resolved and one.key[:1] != "-"}


def _read(files: Files, named: _Named, base: Path, folder: str, out: Followed, beside: str = "") -> None:
    kind = _KINDS.get(posixpath.splitext(named.name)[1], "yaml")
    names = [posixpath.join(beside, named.name), named.name] if beside else [named.name]
    number = next((found for name in names if (found := files.find(name, base, kind, folder)) is not None), None)
    shown = clean_line(named.name)
    if number is None:
        if named.guessed and named.whole:
            return
        if named.whole and kind == "yaml" and len(inlined := keyed_lines(files.documents[0])) >= INLINED:
            out.settings += inlined
            out.notes += (
                say("{file} was not found: the lines `key: value` of the script are taken for it.", file=shown),
            )
            return
        shown = posixpath.basename(shown) if named.guessed else shown
        absent = NotFound(named.key, shown, named.prefix.rstrip(":"))
        out.notes += (absent.note,)
        out.not_found += (absent,)
        out.missing += (shown,) if named.whole else ()
        return
    try:
        composed = read_config(files, number, named.prefix, composed=named.composed, chosen=out.chosen)
    except ScriptError as error:
        out.notes += (str(error),)
        return
    out.settings += composed.settings
    out.files += tuple(composed.files)
    out.notes += tuple(composed.notes)


def _read_written(files: Files, named: _Named, written: WrittenFile, out: Followed) -> None:
    why, shown = why_unknown(written.pieces), clean_line(named.name)
    if why:
        where = {"file": shown, "why": why}
        out.notes += (
            say("The script writes {file} itself, and not all of it is known ({why}); it is not followed.", **where),
        )
        out.missing += (shown,) if named.whole else ()
        return
    try:
        settings = written_settings(written, named.prefix, files.documents)
    except ScriptError as error:
        out.notes += (str(error),)
        return
    out.settings += [s for s in settings if named.key != "--config-name" or not is_hydras(s.key)]


def read_config(
    files: Files, number: int, prefix: str = "", *, composed: bool = False, chosen: Mapping[str, str] | None = None
) -> Composed:
    """The settings of a file with those of the files that its `defaults` name, where hydra reads it (`composed`), or
    where they are names of files, or are there; `chosen`: hydra's groups by the command's words. Raises ScriptError
    where it is not well-formed."""
    document = files.documents[number]
    keyed = read_keyed(document)
    entries, out = keyed.entries, Composed(chosen=chosen or {})
    if composed or (not prefix and _inherits(files, document, entries)):
        compose(files, number, out)
        return out
    out.settings = settings_of(document, [*entries, *empty_tables(keyed)], "file", prefix)
    out.files = [str(document.path)]
    return out


def _inherits(files: Files, document: Document, entries: Sequence[KeyedEntry]) -> bool:
    """Whether `defaults` is a list of files and no setting of the run's own."""
    named = [item for item in _defaults(entries, "", "", {}) if item.path != _SELF]
    return any(item.file or files.exists(document.path.parent / f"{item.path}.yaml") for item in named)


_PACKAGE = regex(rb"#[ \t]*@package[ \t]+([\w.]+)")
_MAX_DEPTH = 8
_SELF = "_self_"


class Composed(Struct):
    """Settings in the order in which they are merged, the files they come from, and what was not found."""

    settings: list[Setting] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    chosen: Mapping[str, str] = field(default_factory=dict)


class _Default(Struct, frozen=True):
    """One entry of the list: a file below the config folder, and the key that its content goes under."""

    path: str
    package: str
    file: bool = False
    """Named as a file, relative to the one that names it."""


def compose(files: Files, number: int, out: Composed, group: str = "", package: str = "", depth: int = 0) -> None:
    """Add a config and what its `defaults` name. Raises ScriptError where the config itself is not well-formed."""
    document = files.documents[number]
    entries = read_yaml(document).entries
    header = _PACKAGE.search(document.data, 0, 500)
    if header and depth:
        package = "" if header.group(1) == b"_global_" else header.group(1).decode()
    own = [entry for entry in entries if not is_hydras(entry.key)]
    prefix = f"{package}." if package else ""
    out.files.append(str(document.path))
    root = document.path.parent.joinpath(*[".."] * len([part for part in group.split("/") if part]))
    listed = [*_defaults(entries, group, package, out.chosen)]
    if not any(item.path == _SELF for item in listed):
        listed.append(_Default(_SELF, ""))
    for item in listed:
        if item.path == _SELF:
            out.settings += settings_of(document, own, "file", prefix)
        elif depth < _MAX_DEPTH:
            _add(files, root, item, out, depth)


def _add(files: Files, root: Path, item: _Default, out: Composed, depth: int) -> None:
    path = root / f"{item.path}.yaml"
    try:
        number = files.add(path, "yaml")
        compose(files, number, out, "" if item.file else posixpath.dirname(item.path), item.package, depth + 1)
    except ScriptError:
        shown = clean_line(item.path, 200)
        out.notes.append(
            say("The config's defaults name {file}, which is not beside it: the framework's own is taken.", file=shown)
        )


def _defaults(entries: Sequence[KeyedEntry], group: str, package: str, chosen: Mapping[str, str]) -> Iterator[_Default]:
    for entry in entries:
        if entry.key == "defaults":
            for text in (entry.value,) if isinstance(entry.value, str) else entry.value:
                name = text.removesuffix(".yaml")
                yield _Default(name, package, file=True) if name != text else _default(text, "", group, package, {})
        elif entry.key.startswith("defaults.") and isinstance(entry.value, str):
            _, _, name = entry.key.removeprefix("defaults.").partition(".")
            if not name:
                yield _default(entry.value, "", group, package, {})
            elif not name.startswith("override ") and entry.value != "null":
                yield _default(name.removeprefix("optional "), entry.value, group, package, chosen)


def _default(name: str, option: str, group: str, package: str, chosen: Mapping[str, str]) -> _Default:
    """`name`, `group: option` or either with `@package`; relative to the config that names it."""
    if name == _SELF:
        return _Default(_SELF, "")
    path, _, given = name.partition("@")
    inside = path.lstrip("/") if path.startswith("/") else posixpath.join(group, path)
    option = chosen.get(inside, option)
    folder = inside if option else posixpath.dirname(path.lstrip("/"))
    own = given or (path.lstrip("/") if option else folder).replace("/", ".")
    if given == "_global_" or given.startswith("_global_."):
        whole = given.removeprefix("_global_").lstrip(".")
    else:
        whole = ".".join(part for part in (package, own.removeprefix("_here_").lstrip(".")) if part)
    return _Default(posixpath.join(inside, option.removesuffix(".yaml")) if option else inside, whole)


def is_hydras(key: str) -> bool:
    """Hydra's own sections are no settings of the run."""
    return key == "defaults" or key.startswith(("defaults.", "hydra."))


_EXPANDED = (b"$", b"`", b"\\")


class WrittenFile(Struct, frozen=True):
    """The text that the script writes, as a file of its own, and the pieces that it comes from."""

    document: Document
    pieces: ShellValue


def find_written(files: Mapping[bytes, ShellValue], name: str, folder: bytes = b"") -> WrittenFile | None:
    """The file of that name among those that the script has written, the last one; `folder`: where it is named."""
    named = name.encode("utf-8", "surrogateescape")
    for wanted in (posixpath.normpath(posixpath.join(folder, named)), posixpath.normpath(named)):
        if wanted in files:
            document = Document(Path(name), joined(files[wanted]), "json" if name.endswith(".json") else "yaml")
            return WrittenFile(document, files[wanted])
    return None


def written_settings(written: WrittenFile, prefix: str, documents: Sequence[Document]) -> list[Setting]:
    """Its settings, each with the literal of the script that decides it. Raises ScriptError."""
    data = [document.data for document in documents]
    out: list[Setting] = []
    for setting in settings_of(written.document, read_keyed(written.document).entries, "file", prefix):
        span = setting.span
        found = None if span is None else target(cut(written.pieces, span.start, span.end), data)
        if found is None:
            out.append(replace(setting, span=None))
            continue
        place, path = found.place, str(documents[found.place.doc].path)
        line = line_at(line_starts(data[place.doc]), place.start)
        out.append(replace(setting, span=Span(path, line, place.start, place.end)))
    return out


def edit_written(written: WrittenFile, wanted: EditRequest, prefix: str, changes: Changes) -> None:
    """Change one key in the text of the script. Raises EditRefused where it does not stand there."""
    inside = Changes([written.document])
    KeyedEditor(read_keyed(written.document), written.document, 0, inside, prefix).settings(
        [replace(wanted, comment="")]
    )
    for edit in inside.edits.get(0, []):
        before = cut(written.pieces, edit.start - 1, edit.start)
        covered = cut(written.pieces, edit.start, edit.end)
        places = [piece.place for piece in (*before, *covered) if piece.text]
        first, last = (places[0], places[-1]) if places else (None, None)
        if first is None or last is None or any(p is None or p.doc != 0 or p.context != first.context for p in places):
            raise refused("{key} is written from text that stands elsewhere.", wanted.key)
        safe = first.context == "single" or not any(sign in edit.new for sign in _EXPANDED)
        quoted = {"single": b"'", "double": b'"'}.get(first.context, b"")
        if first.context not in ("heredoc", "single", "double") or not safe or (quoted and quoted in edit.new):
            raise refused("{key} stands in quotes that cannot hold the new value.", wanted.key)
        start = first.end if before else first.start
        changes.replace(0, start, last.end if covered else start, edit.new, wanted.key)
