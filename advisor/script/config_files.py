"""Config files that a launch names, followed into settings of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from advisor.bash.state import TracedCommand
from advisor.bash.text import why_unknown
from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import ScriptError, Setting
from advisor.script.files import Files
from advisor.script.hydra_defaults import Composed, compose, is_hydras
from advisor.script.json_file import read_json
from advisor.script.keyed import Keyed, settings_of
from advisor.script.launch import Launch, NotFound
from advisor.script.written_file import WrittenFile, find_written, written_settings
from advisor.script.yaml_file import read_yaml

_YAML = (".yaml", ".yml")
_OVERLAY_KEYS = ("--config-path", "-cp", "--config-name", "-cn", "--config-dir", "-cd")


class Followed(Struct):
    """Settings from files, in order of precedence, the files' paths, and what could not be found."""

    settings: list[Setting] = field(default_factory=list)
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Files that decide the run's own settings and could not be followed."""
    not_found: tuple[NotFound, ...] = ()
    """Files that the launch names and that are not there."""


class _Named(Struct, frozen=True):
    """A file that a launch names, with the prefix of its keys and what to call it in a note."""

    key: str
    name: str
    prefix: str = ""

    @property
    def whole(self) -> bool:
        """Whether it holds the run's own settings, not those of a launcher or of an overlay of known defaults."""
        return not self.prefix and self.key != "--config-name"

    def as_not_found(self) -> NotFound:
        return NotFound(self.key, clean_line(self.name), self.prefix.rstrip(":"))


def follow(
    files: Files,
    launcher: Mapping[str, str],
    own: Sequence[Setting],
    positional: Sequence[str],
    command: TracedCommand,
    base: Path,
) -> Followed:
    """Settings of the config files of one launch.

    `own` are its command-line settings, `positional` its other arguments, `base` the script's folder.
    A dialect's own meaning of the keys is not known here: the shapes of names decide.
    """
    out = Followed()
    for named in _named(launcher, own, positional):
        written = find_written(command.files, named.name)
        if written is None:
            _read(files, named, base, command.folder.decode("utf-8", "surrogateescape"), out)
        else:
            _read_written(files, named, written, out)
    return out


def _named(launcher: Mapping[str, str], own: Sequence[Setting], positional: Sequence[str]) -> Iterator[_Named]:
    accelerate = launcher.get("--config_file") or launcher.get("--config-file")
    if accelerate:
        yield _Named("--config_file", accelerate, "accelerate:")
    values = {setting.key: setting.value for setting in own if isinstance(setting.value, str)}
    overlay = _overlay(values)
    if overlay:
        yield overlay
    for word in positional:
        if word.endswith((*_YAML, ".json")):
            yield _Named("", word)
    for key, value in values.items():
        bare = key.lstrip("-").replace("-", "_")
        if bare in ("config", "config_file") and value.endswith((*_YAML, ".json")):
            yield _Named(key, value)
        elif bare in ("deepspeed", "deepspeed_config") and value.endswith(".json"):
            yield _Named(key, value, "deepspeed:")
        elif bare == "fsdp_config" and value.endswith(".json"):
            yield _Named(key, value, "fsdp:")


def named_file(launch: Launch, prefix: str) -> str | None:
    """The name of the file that gives a launch its keys with this prefix."""
    found = [named.name for named in _named(launch.launcher, launch.settings, ()) if named.prefix == prefix]
    return found[-1] if found else None


def _overlay(values: Mapping[str, str]) -> _Named | None:
    """Hydra's `--config-path` and `--config-name`."""
    name = values.get("--config-name") or values.get("-cn")
    if not name:
        return None
    folder = values.get("--config-path") or values.get("-cp") or values.get("--config-dir") or values.get("-cd") or ""
    name = name if name.endswith(_YAML) else name + ".yaml"
    return _Named("--config-name", f"{folder}/{name}" if folder else name)


def _read(files: Files, named: _Named, base: Path, folder: str, out: Followed) -> None:
    kind = "json" if named.name.endswith(".json") else "yaml"
    number = files.find(named.name, base, "json" if kind == "json" else "yaml", folder)
    shown = clean_line(named.name)
    if number is None:
        if named.key:
            where = {"key": named.key, "file": shown}
            note = say("{key} names {file}, which was not found; its settings are not known.", **where)
        else:
            note = say("The launch names {file}, which was not found; its settings are not known.", file=shown)
        out.notes += (note,)
        out.not_found += (named.as_not_found(),)
        out.missing += (shown,) if named.whole else ()
        return
    document = files.documents[number]
    if named.key == "--config-name":
        _read_composed(files, number, out)
        return
    try:
        keyed = read_json(document) if kind == "json" else read_yaml(document)
    except ScriptError as error:
        out.notes += (str(error),)
        return
    out.settings += _listed(document_settings(files, number, keyed, named.prefix), named)
    out.files += (str(document.path),)


def _read_composed(files: Files, number: int, out: Followed) -> None:
    composed = Composed()
    try:
        compose(files, number, composed)
    except ScriptError as error:
        out.notes += (str(error),)
        return
    out.settings += composed.settings
    out.files += tuple(composed.files)
    out.notes += tuple(composed.notes)


def _read_written(files: Files, named: _Named, written: WrittenFile, out: Followed) -> None:
    why = why_unknown(written.pieces)
    if why:
        shown = clean_line(named.name)
        note = say(
            "The script writes {file} itself, and not all of it is known ({why}); it is not followed.",
            file=shown,
            why=why,
        )
        out.notes += (note,)
        out.missing += (clean_line(named.name),) if named.whole else ()
        return
    try:
        out.settings += _listed(written_settings(written, named.prefix, files.documents), named)
    except ScriptError as error:
        out.notes += (str(error),)


def document_settings(files: Files, number: int, keyed: Keyed, prefix: str) -> list[Setting]:
    """A followed file's entries as settings."""
    return settings_of(files.documents[number], keyed.entries, "file", prefix)


def _listed(settings: list[Setting], named: _Named) -> list[Setting]:
    """Hydra's own sections are no settings of the run."""
    if named.key != "--config-name":
        return settings
    return [setting for setting in settings if not is_hydras(setting.key)]
