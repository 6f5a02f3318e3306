"""Writes the pages of the documentation site: one for every entry of the knowledge, and the repository's own texts.

`pages()` gives path → Markdown; `hooks.py` hands them to mkdocs. What stands on a page of the knowledge is what
`rl-oom-advisor explain ID` says, unwrapped and with its names linked.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

from advisor.knowledge import Knowledge, load_knowledge
from advisor.report import explain_report
from advisor.report.layout import wrap
from advisor.words import MEMORY_TITLES

ROOT = Path(__file__).resolve().parents[1]
TEXTS = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh.md",
    **{f"{name}.md": f"{name.lower()}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY")},
}
"""File of the repository → page."""
PICTURES = ".svg"
KINDS = {
    "causes": "Causes: why memory ran out",
    "remedies": "Remedies: what can be changed",
    "cases": "Cases: crashes that people reported",
    "crash-lines": "Crash lines: what a log proves",
    "advisories": "Advisories: versions that are at fault",
    "questions": "Questions: what decides between causes",
    "knobs": "Knobs: what a setting means, whatever it is called",
    "frameworks": "Frameworks and their settings",
    "settings": "Settings",
}
"""Folder → its heading."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")
_WORD = re.compile(r"[\w][\w.\-]*[\w]")
_ADDRESS = re.compile(r"https?://[^\s;,)]+[^\s;,).]")
_AT_GITHUB = re.compile(r"\b([\w.-]+/[\w.-]+)@([\w.-]+) ([\w./-]+\.\w+)(?::(\d+))?")
_LONGEST = 100_000


def pages() -> dict[str, str]:
    """Every page of the site."""
    knowledge = load_knowledge()
    paths = dict(_paths(knowledge))
    names = _names(knowledge)
    titles = {name: names[path.partition("/")[0]][name] for name, path in paths.items()}
    found = {path: _entry(knowledge, name, titles[name], paths) for name, path in paths.items()}
    for framework in knowledge.frameworks:
        found[f"frameworks/{framework.framework}.md"] += _settings_of(framework.framework, knowledge, paths)
    found |= {f"{kind}/index.md": _index(kind, heading, knowledge, paths) for kind, heading in KINDS.items()}
    for name, page in TEXTS.items():
        found[page] = _text(ROOT / name, page)
    for path in sorted((ROOT / "docs").glob("*.md")):
        found[f"docs/{path.name}"] = _text(path, f"docs/{path.name}")
    return found


def _paths(knowledge: Knowledge) -> Iterator[tuple[str, str]]:
    """Id → its page. Of an id that two kinds have, the first kind's page tells both."""
    seen: set[str] = set()
    for kind, names in _names(knowledge).items():
        for name in names:
            if name not in seen:
                seen.add(name)
                yield name, f"{kind}/{_file(name)}.md"


def _names(knowledge: Knowledge) -> dict[str, dict[str, str]]:
    """Kind → id → title; a setting has no other name than its key."""
    frameworks = knowledge.frameworks
    keys = {key for one in frameworks for key in (*one.settings, *one.environment)}
    titled = {
        "causes": knowledge.tree.causes,
        "remedies": knowledge.remedies,
        "cases": knowledge.cases,
        "crash-lines": knowledge.signatures.signatures,
        "advisories": knowledge.advisories,
        "knobs": knowledge.knobs,
    }
    return {
        "frameworks": {one.framework: one.title for one in frameworks},
        **{kind: {one.id: one.title for one in group} for kind, group in titled.items()},
        "questions": {one.id: one.asks for one in knowledge.tree.questions},
        "settings": {key: key for key in sorted(keys)},
    }


def _file(name: str) -> str:
    """A file's name, also where case does not count: capitals are marked."""
    return re.sub(r"[A-Z]+", lambda found: f"{found[0].lower()}-", name).strip("-").replace("/", "-").replace(".", "-")


def _entry(knowledge: Knowledge, name: str, title: str, paths: Mapping[str, str]) -> str:
    """What `explain` says: its head, paragraphs, and lists of what stands further in."""
    with patch.object(explain_report, "wrap", _unwrapped):
        told = explain_report.explain_report(knowledge, name).splitlines()
    out = [f"# {_plain(title)}", ""]
    for line in told:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if text == title:
            continue
        out += [f"- {_linked(text, name, paths)}"] if indent > 2 else [_linked(text, name, paths), ""]
    return "\n".join([*out, "", f"`rl-oom-advisor explain {name}` says this in a terminal.", ""])


def _unwrapped(text: str, indent: int = 0, _: int | None = None) -> list[str]:
    return wrap(text, indent, width=_LONGEST)


def _linked(text: str, here: str, paths: Mapping[str, str]) -> str:
    """Text as Markdown: nothing of it is markup, names of the knowledge, addresses and sources are links."""
    out, at = [], 0
    finds = [*_AT_GITHUB.finditer(text), *_ADDRESS.finditer(text), *_WORD.finditer(text)]
    for found in sorted(finds, key=lambda one: (one.start(), -one.end())):
        if found.start() < at:
            continue
        target = _target(found, here, paths)
        if target:
            out += [_plain(text[at : found.start()]), f"[{_plain(found[0])}]({target})"]
            at = found.end()
    return "".join([*out, _plain(text[at:])])


def _target(found: re.Match[str], here: str, paths: Mapping[str, str]) -> str:
    if found.re is _AT_GITHUB:
        line = f"#L{found[4]}" if found[4] else ""
        return f"https://github.com/{found[1]}/blob/{found[2]}/{found[3]}{line}"
    if found.re is _ADDRESS:
        return found[0]
    name = found[0]
    named = name in paths and name != here and re.search(r"[._-]", name) is not None
    return posixpath.relpath(paths[name], posixpath.dirname(paths[here])) if named else ""


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text).replace("&", "&amp;")


def _index(kind: str, heading: str, knowledge: Knowledge, paths: Mapping[str, str]) -> str:
    memory = {one.id: MEMORY_TITLES[one.memory] for one in (*knowledge.tree.causes, *knowledge.remedies)}
    out = [f"# {heading}", ""]
    for name, title in _names(knowledge)[kind].items():
        after = f" ({memory[name]})" if kind in ("causes", "remedies") else ""
        code = "" if title == name else f" `{name}`"
        out.append(f"- [{_plain(title)}]({posixpath.relpath(paths[name], kind)}){after}{code}")
    return "\n".join(out) + "\n"


def _settings_of(name: str, knowledge: Knowledge, paths: Mapping[str, str]) -> str:
    framework = next(one for one in knowledge.frameworks if one.framework == name)
    keys = [*framework.settings, *framework.environment]
    rows = [f"- [{_plain(key)}]({posixpath.relpath(paths[key], 'frameworks')})" for key in sorted(keys)]
    return "\n".join(["", "## Settings", "", *rows, ""])


def _text(path: Path, page: str) -> str:
    """A text of the repository, its links to other texts and pictures as the site has them; other links are words."""
    folder, here = path.parent, posixpath.dirname(page)

    def linked(found: re.Match[str]) -> str:
        sign, words, target = found.groups()
        if target.startswith(("http://", "https://", "#", "mailto:")):
            return found[0]
        name, hash_, anchor = target.partition("#")
        whole = (folder / name).resolve()
        inside = whole.relative_to(ROOT).as_posix() if whole.is_relative_to(ROOT) else ""
        own = TEXTS.get(inside) or (inside if inside.startswith("docs/") or inside.endswith(PICTURES) else "")
        if not own or not whole.is_file():
            return words
        return f"{sign}[{words}]({posixpath.relpath(own, here or '.')}{hash_}{anchor})"

    return _LINK.sub(linked, path.read_text(encoding="utf-8"))


def pictures() -> Iterable[Path]:
    """Files beside the pages: pictures, and the JSON contract that texts link to."""
    return [*sorted((ROOT / "screenshots").glob(f"*{PICTURES}")), *sorted((ROOT / "docs").glob("*.json"))]
