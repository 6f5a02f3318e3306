"""The language the program speaks. An English text is its own id; a catalogue gives it in another language.

`say("{count} lines read", count=n)` is looked up as it stands in the source, then filled. A text that is kept in a
constant is wrapped in `mark` or `Sayings` where it stands and said where it is used. Catalogues are JSON, English to
translation, one file a room: languages/LANGUAGE/*.json here for the program, knowledge/LANGUAGE/*.json for the
knowledge. A text that no catalogue has is shown in English.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

ENGLISH, CHINESE, AUTO = "en", "zh", "auto"
LANGUAGES = (ENGLISH, CHINESE)
_TRADITIONAL = ("zh_tw", "zh_hk", "zh_mo", "zh_hant")
K = TypeVar("K")
T = TypeVar("T")


class _Spoken:
    """What is in force in this process."""

    language = ENGLISH
    catalogue: Mapping[str, str] = {}
    unsaid: set[str] = set()
    renamed: Callable[[str], str] | None = None


def rename(renamed: Callable[[str], str] | None) -> None:
    """Put every text of ours through `renamed` before its fields are filled, from now on; None: leave them alone. For
    names of things that another vendor's software calls otherwise. What stands in a field (a quoted line, a key of the
    user's) keeps its own words."""
    _Spoken.renamed = renamed


def speak(language: str, catalogue: Mapping[str, str] | None = None) -> None:
    """Say everything in `language` from now on. Raises ValueError where there is no such language. `catalogue`: in
    place of the files beside this one, for a process that has no files of ours."""
    if language not in LANGUAGES:
        raise ValueError(language)
    if catalogue is None:
        catalogue = read_catalogue(Path(__file__).parent / "languages" / language) if language != ENGLISH else {}
    _Spoken.catalogue = catalogue
    _Spoken.language = language
    _Spoken.unsaid = set()


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Say everything in `language` for a while: what leaves the program for readers of another language."""
    before = _Spoken.language, _Spoken.catalogue, _Spoken.unsaid
    speak(language)
    try:
        yield
    finally:
        _Spoken.language, _Spoken.catalogue, _Spoken.unsaid = before


def as_now(work: Callable[[], T]) -> Callable[[], T]:
    """`work`, done later in the language and names that are in force now."""
    language, catalogue, renamed = _Spoken.language, _Spoken.catalogue, _Spoken.renamed

    def later() -> T:
        before = _Spoken.language, _Spoken.catalogue, _Spoken.renamed
        _Spoken.language, _Spoken.catalogue, _Spoken.renamed = language, catalogue, renamed
        try:
            return work()
        finally:
            _Spoken.language, _Spoken.catalogue, _Spoken.renamed = before

    return later


def spoken() -> str:
    """The language in force."""
    return _Spoken.language


def unsaid() -> frozenset[str]:
    """The texts that were asked for since `speak` and that no catalogue has; () in English."""
    return frozenset(_Spoken.unsaid)


def say(text: str, /, **fields: object) -> str:
    """`text` in the language in force, its {fields} filled. Without fields, braces stand for themselves."""
    if _Spoken.renamed is not None:
        told = _Spoken.renamed(_translated(text) if _Spoken.catalogue else text)
        return _filled(told, _Spoken.renamed(text), fields)
    if _Spoken.catalogue:
        return _filled(_translated(text), text, fields)
    return text.format_map(fields) if fields else text


def say_count(one: str, many: str, number: int, /, **fields: object) -> str:
    """`one` where `number` is 1, else `many`; {number} and the other fields filled. Catalogues have `many` only."""
    fields["number"] = number
    if _Spoken.catalogue:
        return _filled(_translated(many), many, fields)
    return (one if number == 1 else many).format_map(fields)


def mark(text: str) -> str:
    """A text that is said later: `say(NAME)`."""
    return text


class Sayings(dict[K, str]):
    """Texts by key, each said when it is looked up: Sayings({"log": "by the log"})["log"]."""

    def __getitem__(self, key: K) -> str:
        return say(super().__getitem__(key))

    def get(self, key: K, default: str = "") -> str:  # type: ignore[override]
        """The text of `key`, or `default` as it is."""
        return self[key] if key in self else default  # noqa: SIM401 - the lookup says


def listed(items: Iterable[str]) -> str:
    """ "a, b, c"."""
    return say(", ").join(items)


def clauses(items: Iterable[str]) -> str:
    """ "a; b"."""
    return say("; ").join(items)


def sentences(items: Iterable[str]) -> str:
    """Whole sentences one after the other; empty ones leave no gap."""
    return say(" ").join(item for item in items if item)


def _filled(said: str, text: str, fields: Mapping[str, object]) -> str:
    """`said` filled; the English `text` where a damaged translation has other fields."""
    if not fields:
        return said
    try:
        return said.format_map(fields)
    except (LookupError, ValueError, AttributeError):
        return text.format_map(fields)


def _translated(text: str) -> str:
    found = _Spoken.catalogue.get(text)
    if found is None:
        _Spoken.unsaid.add(text)
        return text
    return found


def read_catalogue(folder: Path, files: str = "*.json") -> dict[str, str]:
    """Every pair of the folder's JSON files, or of those so named; {} where there is no such folder. A damaged file is
    left out."""
    import json

    pairs: dict[str, str] = {}
    for file in sorted(folder.glob(files)):
        try:
            told = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue  # what cannot be read is said in English
        told = told if isinstance(told, dict) else {}
        pairs.update({text: said for text, said in told.items() if isinstance(said, str)})
    return pairs


def choose(asked: str, environ: Mapping[str, str] | None = None) -> str:
    """The language for `asked` ("auto": by the locale). Traditional-Chinese locales get English."""
    if asked != AUTO:
        return asked
    environ = os.environ if environ is None else environ
    said = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    if said not in ("", "C", "POSIX") and environ.get("LANGUAGE"):
        said = environ["LANGUAGE"].partition(":")[0]
    said = said.lower().replace("-", "_")
    return CHINESE if said.startswith("zh") and not said.startswith(_TRADITIONAL) else ENGLISH
