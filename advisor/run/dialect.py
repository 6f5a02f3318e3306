"""Recognises the framework and its era, from the launch, the log, or the source tree around the script."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from msgspec import Struct

from advisor.hostile import clean_line
from advisor.knowledge.code_lines import code_lines, place_in_package
from advisor.knowledge.key_space import key_space
from advisor.knowledge.schema import Era, Framework, Project, Recognition
from advisor.language import listed, say
from advisor.regex import regex
from advisor.rules.functions import release_of, version_in
from advisor.run.natives import any_key, fact_in, native
from advisor.run.run import RecognisedFrom
from advisor.run.unknown_keys import by_named_keys, by_words, is_added, known_share, outspoken, strangers
from advisor.script.files import text_of
from advisor.script.launch import Launch

LEAST_SHARE = 1 / 3
"""Of the keys that a launch sets, known to the framework that one of them speaks of. The examples of eight frameworks
have 0.44 and more, one with its own sections of environments the least; another project with a key in common 0.07."""
LEAST_SHARE_OF_OPTIONS = 0.7
"""Where a file's name is half of the proof, and its parser stops at a strange option: forks of TRL have 0.84 and more,
another project's DPO on the same Trainer 0.55 to 0.7."""
LEAST_PRINTED = 3
"""Settings printed in a log that show whose they are."""
MOST_NAMED = 4
"""Settings named one by one; a launch for another version has dozens."""
EraToldBy = Literal["version", "keys", "folders", "frames", "libraries", "dates", "user", "nothing"]
"""What told the era: the framework's version, the keys that are set, a fork's folder in the traceback, the files that
it names, versions of other libraries, the days of the log's lines, the user, or nothing at all."""
ASSIGNED = ("assignments", "additions")
"""Answers of `beside_file` by which a command takes key=value."""
ASSUMED_BY: tuple[EraToldBy, ...] = ("nothing", "dates", "libraries", "frames")
"""What tells an era only by what is usual: the keys of another one may hold."""


class Recognised(Struct, frozen=True):
    """The dialect that fits, and what told it. `framework` None: none does."""

    framework: Framework | None
    era: str
    because: str
    version: str | None = None
    told_by: RecognisedFrom = "script"
    era_told_by: EraToldBy = "version"
    checkout: str | None = None
    """The version that the source tree around the script states."""
    dated: str = ""
    """The day of the log that bounds the versions; "" where it tells none."""
    own_program: bool = False
    """What is started bears a name that the framework's own program has."""
    project: Project | None = None
    """What carries the framework's code, or code that is not known."""


def recognise(
    launch: Launch | None,
    source_text: str,
    log_marks: Sequence[str],
    log_settings: Mapping[str, str],
    libraries: Mapping[str, str],
    frameworks: Sequence[Framework],
    paths: Sequence[str] = (),
    script: Path | None = None,
    stated: Collection[str] = (),
    dated: str = "",
    prose: Sequence[str] = (),
    project: Project | None = None,
) -> Recognised:
    """The first dialect, most specific first, whose marks all agree. `log_marks`: framework words proven by the log,
    `paths`: of the files that its traceback names, `script`: where the launch lies, for the source tree around it,
    `stated`: packages whose versions the user or the log told, which decide where no program is seen, `dated`: the
    log's last day, `prose`: words of a person, of which the name of one framework decides where nothing else does,
    `project`: whose tree the log or the script names.
    """
    told_by: RecognisedFrom = "script"
    found = _by_launch(launch, source_text, frameworks) if launch is not None else None
    a_strangers = project is not None and not project.built_on  # who may name its options as anybody does
    if (
        found is None
        and launch is not None
        and not a_strangers
        and (worded := by_words(launch, frameworks)) is not None
    ):
        found = worded[0], listed([say("setting {key}", key=clean_line(key, 60)) for key in worded[1][:MOST_NAMED]])
    if found is not None and launch is not None and found[0].serves_others:
        found = _built_on_it(launch, {*stated, *log_marks}, frameworks) or found
    if found is None:
        known_keys = {} if project is not None and project.own_loop else log_settings  # its names are its own
        told_by, found = "log", _by_log(log_marks, known_keys, frameworks)
        found = None if found is not None and launch is not None and _of_its_own(found[0], launch) else found
    if found is None and (launch is None or not launch.program):
        told_by, found = "user", _by_packages(stated, frameworks)
        found = None if found is not None and launch is not None and not knows_keys(found[0], launch) else found
    if found is None and (launch is None or not launch.program):
        found = _by_name(prose, frameworks) or by_named_keys(prose, frameworks)
    if found is None:
        because = say("no known framework's marks in the script or the log")
        return Recognised(None, "", because, project=project)
    framework, because = found
    paths = [*paths, *([project.name] if project is not None else [])]
    project = project or _own_tree(framework, paths)
    checkout = checkout_version(framework, script) if script is not None else None
    version = libraries.get(framework.package, checkout)
    keys, added = set(log_settings), set[str]()
    if launch is not None:
        added = {native(setting.key) for setting in launch.settings if setting.marker == "+"}
        keys |= {native(setting.key) for setting in launch.settings} - added
        paths = [*paths, launch.program, *([str(script)] if script is not None else [])]
    era, era_told_by = told_era(framework, version, keys, libraries, paths, added, dated)
    own = launch is not None and any(_fits_program(mark, launch) for mark in framework.recognised_by if not mark.has)
    return Recognised(framework, era, because, version, told_by, era_told_by, checkout, dated, own, project)


_GENERAL = regex(r"(?:site|dist)-packages|src|lib|python[\d.]*")


def _own_tree(framework: Framework, paths: Sequence[str]) -> Project | None:
    """The tree that carries the framework's package under a name that is not the framework's; None where none does."""
    package = framework.package.replace("-", "_")
    for path in paths:
        found = re.search(rf"/([^/]*[A-Z_-][^/]*)/{re.escape(package)}/(?:trainer|workers|models|utils|cli)/", path)
        own = found is None or package in found[1].lower() or _bare(found[1]) in _bare(framework.title)
        if found is not None and not own and not _GENERAL.fullmatch(found[1]):
            return Project(clean_line(found[1], 60), built_on=framework.framework)
    return None


def _by_launch(launch: Launch, text: str, frameworks: Sequence[Framework]) -> tuple[Framework, str] | None:
    ordered = [(r.priority, i, f, r) for i, f in enumerate(frameworks) for r in f.recognised_by]
    for _, _, framework, recognition in sorted(ordered, key=lambda row: row[:2]):
        because = _fits(recognition, launch, text)
        if not because:
            continue
        keyed = recognition.has + recognition.has_all
        if recognition.python_bases or (recognition.programs and not keyed):  # names that nobody else gives
            return framework, because
        if _speaks(framework, launch, recognition) and not outspoken(framework, launch, frameworks):
            return framework, because
    return None


def _speaks(framework: Framework, launch: Launch, recognition: Recognition) -> bool:
    """Whether the launch is written in the framework's keys: many a project has one of them, too."""
    share, space = known_share(framework, launch), key_space(framework.framework)
    strict = bool(recognition.programs) and framework.syntax == "argparse" and space is not None and space.refuses
    return share is None or share >= (LEAST_SHARE_OF_OPTIONS if strict else LEAST_SHARE)


def _fits(recognition: Recognition, launch: Launch, text: str) -> str:
    """What in the launch fits all given parts, in words; "" where one does not."""
    keys = {native(setting.key) for setting in launch.settings}
    reasons: list[str] = []
    if recognition.programs:
        if not _fits_program(recognition, launch):
            return ""
        reasons.append(say("program {program}", program=launch.program))
    if recognition.python_bases:
        imported = {base.rpartition(".")[2] for base in launch.bases if "." in base} if recognition.not_imported else ()
        shared = any_key(recognition.python_bases, sorted(base for base in launch.bases if base not in imported))
        if shared is None:
            return ""
        reasons.append(say("class of {base}", base=shared))
    if recognition.has_all:
        keyed = [any_key([pattern], sorted(keys)) for pattern in recognition.has_all]
        if None in keyed:
            return ""
        reasons += [say("setting {key}", key=key) for key in keyed]
    if recognition.has:
        key = any_key(recognition.has, sorted(keys))
        if key is None:
            return ""
        reasons.append(say("setting {key}", key=key))
    if recognition.lacks and any_key(recognition.lacks, keys) is not None:
        return ""
    if recognition.marks:
        mark = _mark(recognition.marks, launch, text)
        if mark is None:
            return ""
        reasons.append(say("the text {text!r}", text=mark))
    if not reasons:
        return ""
    reasons += [say("the text {text!r}", text=hint) for hint in recognition.hints if hint in text][:1]
    return listed(dict.fromkeys(reasons))


def _fits_program(recognition: Recognition, launch: Launch) -> bool:
    return any(fnmatchcase(launch.program, pattern) for pattern in recognition.programs)


def _mark(marks: Sequence[str], launch: Launch, text: str) -> str | None:
    """The first mark that stands in the script's text or in a resolved value, any case, where a word ends with it."""
    places = [text, *(setting.text for setting in launch.settings)]
    patterns = {mark: re.compile(re.escape(mark) + r"(?![^\W_])", re.IGNORECASE) for mark in marks}
    return next((mark for mark, pattern in patterns.items() if any(pattern.search(place) for place in places)), None)


def _by_log(
    marks: Sequence[str], log_settings: Mapping[str, str], frameworks: Sequence[Framework]
) -> tuple[Framework, str] | None:
    for mark in marks:
        for framework in frameworks:
            if framework.framework == mark:
                return framework, say("lines of its own in the log, which a fork may print too")
    known = {each.framework: [key for key in log_settings if key in each.settings] for each in frameworks}
    most = max(frameworks, key=lambda one: (len(known[one.framework]), one.serves_others), default=None)
    if most is None or len(known[most.framework]) < LEAST_PRINTED:
        return None
    return most, say("settings printed in the log ({key}, …)", key=known[most.framework][0])


def _of_its_own(framework: Framework, launch: Launch) -> bool:
    """Whether a launch has options of its own, where the log only speaks of a library below it."""
    below = any(mark.below for mark in framework.recognised_by)
    return below and bool(launch.settings) and not knows_keys(framework, launch)


def knows_keys(framework: Framework, launch: Launch) -> bool:
    """Whether settings without a program may be the framework's: it has as many of them as a launch of it must have."""
    share = known_share(framework, launch)
    return share is None or share >= LEAST_SHARE_OF_OPTIONS


def _built_on_it(launch: Launch, named: Set[str], frameworks: Sequence[Framework]) -> tuple[Framework, str] | None:
    """The framework that the told versions or the log name, where the launch makes a trainer of its classes. A file
    that was pasted without its imports bears no other mark."""
    for framework in frameworks:
        bases = [base for mark in framework.recognised_by for base in mark.python_bases]
        if named & {framework.package, framework.framework} and not framework.serves_others:
            shared = any_key(bases, sorted(launch.bases)) if bases else None
            if shared is not None:
                return framework, say("class of {base}", base=shared)
    return None


def _by_name(prose: Sequence[str], frameworks: Sequence[Framework]) -> tuple[Framework, str] | None:
    """The one framework that a person names, also beside the trainer library that it is built on."""
    said = {_bare(word): word for word in prose}
    named = [(one, _bare(one.title)) for one in frameworks if _bare(one.title) in said]
    own = [(one, word) for one, word in named if not one.serves_others] or named
    return (own[0][0], say("named in the text: {name}", name=said[own[0][1]])) if len(own) == 1 else None


def _bare(name: str) -> str:
    """A name as people spell it, without what joins its parts."""
    return re.sub(r"[-_. ]", "", name).lower()


def _by_packages(stated: Collection[str], frameworks: Sequence[Framework]) -> tuple[Framework, str] | None:
    """The one framework whose own package was named; of several that share it, the one that bears its name."""
    packages = {each.package for each in frameworks if each.package in stated and not each.serves_others}
    if len(packages) != 1:
        return None
    (package,) = packages
    sharing = [each for each in frameworks if each.package == package]
    found = next((each for each in sharing if each.framework == package), sharing[0] if len(sharing) == 1 else None)
    return (found, say("the version told of its package {package}", package=package)) if found is not None else None


def elsewhere(framework: Framework | None, launch: Launch) -> str:
    """The Python file that holds the settings, where the launch is a command that only names it; "" where it is not."""
    if framework is None or framework.syntax != "dataclass" or not launch.argv:
        return ""
    program = launch.program
    return program if program.endswith(".py") else program.replace(".", "/") + ".py"


def beside_file(recognised: Recognised, launch: Launch | None, key: str = "") -> tuple[bool, str]:
    """Whether what a command does not have yet goes into its config file, and how the command takes it: "assignments"
    (key=value), "additions" (++key=value where no file has such a key: hydra stops at others), "dashes" (--kebab-case),
    "nothing", or "" for options. Where nobody knows the version and one takes nothing, the file that was read holds it
    in all of them."""
    framework = recognised.framework
    if framework is None or launch is None or not launch.argv:
        return False, ""
    options = any(one.key.startswith("-") for one in launch.settings if one.origin == "command")
    named = any(  # found, written before, or not; a word that nobody knows is a file where there is no option
        str(word).endswith((".yaml", ".yml", ".json")) or (word is None and not options) for word in launch.loose
    )
    from_file = named or any(s.origin != "command" for s in launch.settings)
    usual = {"hydra": "assignments", "dotlist": "assignments", "yaml": "nothing"}.get(framework.syntax, "")
    told = framework.beside_file if from_file or usual else {}
    form = told.get(recognised.era, told.get("*", usual)).replace("options", "")
    unsure = recognised.era_told_by in ASSUMED_BY
    if framework.syntax == "hydra" and recognised.era not in told and is_added(framework, recognised.era, key, unsure):
        form = "additions"
    was_read = any(s.origin == "file" and s.span is not None for s in launch.settings)
    return (unsure and was_read and "nothing" in told.values()) or form in ("nothing", "dashes"), form


def era_of(framework: Framework, version: str | None, keys: set[str]) -> str:
    """The era of an installed version, else of the keys that are set, else the newest one without marks of its own."""
    return told_era(framework, version, keys, {})[0]


def told_era(
    framework: Framework,
    version: str | None,
    keys: set[str],
    libraries: Mapping[str, str],
    paths: Sequence[str] = (),
    added: Collection[str] = (),
    dated: str = "",
) -> tuple[str, EraToldBy]:
    """The era, and what told it. Keys: first the eras that have the most of them, then those whose marks are set.
    `added`: keys that are set with hydra's `+`, which an era that has them refuses; `dated`: the log's last day."""
    of_version = [e for e in framework.eras if version and e.versions and version_in(e.versions, version)]
    if of_version:
        return _era_by_keys(framework, of_version, keys, libraries, paths, added, dated)[0], "version"
    era, told_by = _era_by_keys(framework, framework.eras, keys, libraries, paths, added, dated)
    without, young = _without(framework, paths), _too_young(framework, paths)
    if era not in {*without, *young} or told_by == "keys":
        return era, told_by
    left = [one for one in framework.eras if one.id not in without]
    left = [one for one in left if one.id not in young] or left
    by: EraToldBy = "frames" if era in without else "libraries"
    era, told_by = _era_by_keys(framework, left, keys, libraries, paths, added, dated)
    return era, told_by if told_by == "keys" else by


def _without(framework: Framework, paths: Iterable[str]) -> Collection[str]:
    """Eras of which no release has all the files that a traceback names; none where all lack one."""
    places = {place for path in paths if (place := place_in_package(path)) is not None}
    having = [found for at, file in places if (lines := code_lines(at)).package == framework.package
              and (found := lines.of_file(file))]  # fmt: skip
    releases = frozenset[str]().union(*having[:1]).intersection(*having)
    out = [one.id for one in framework.eras if not any(version_in(one.versions or "", each) for each in releases)]
    return out if len(out) < len(framework.eras) else ()


_PYTHON = regex(r"/python(3\.\d{1,2})/")


def _too_young(framework: Framework, paths: Iterable[str]) -> Collection[str]:
    """Eras that refuse the Python which the folders of a traceback name; none where all of them do."""
    version = next((match[1] for path in paths if (match := _PYTHON.search(path)) is not None), None)
    asked = {era.id: era.libraries.get("python", "") for era in framework.eras}
    young = [era for era, spec in asked.items() if version is not None and spec and not version_in(spec, version)]
    return young if len(young) < len(asked) else ()


def _era_by_keys(
    framework: Framework,
    eras: Sequence[Era],
    keys: set[str],
    libraries: Mapping[str, str],
    paths: Sequence[str],
    added: Collection[str],
    dated: str,
) -> tuple[str, EraToldBy]:
    keys = _in_full(framework, keys)
    lacking = {e.id: (len(absent(framework, e.id, keys)), strangers(framework, e.id, keys, added)) for e in eras}
    of_fork_keys = [era for era in eras if any_key(era.fork_keys, {*keys, *added}) is not None]
    if of_fork_keys:
        return min(of_fork_keys, key=lambda era: lacking[era.id]).id, "keys"
    fewest = min(lacking.values(), default=(0, 0))
    possible = [era for era in eras if lacking[era.id] == fewest]
    fitting = [era for era in possible if _marks_fit(era, keys)] or possible
    marked = [era for era in fitting if era.has and any_key(era.has, keys) is not None]
    usual = next((number for number, era in enumerate(eras) if not era.has), len(eras))
    if not dated and usual < len(eras) and eras[usual] in possible:
        # Marks of an older era: the usual one has those keys, too.
        marked = [era for era in marked if eras.index(era) < usual]
    chosen = marked or [era for era in fitting if not era.has] or fitting
    if not chosen:
        return "", "nothing"
    if marked or len(possible) == 1:
        return next((era for era in chosen if _names_a_folder(era, paths, "*.py")), chosen[0]).id, "keys"
    of_fork = [era for era in possible if _names_a_folder(era, paths)]
    if of_fork:
        return of_fork[0].id, "folders"
    suited = [era for era in possible if _runs_with(era, libraries) and any_key(era.lacks, keys) is None]
    if suited and chosen[0] not in suited:
        return suited[0].id, "libraries"
    out = _newest_out([era for era in possible if any_key(era.lacks, keys) is None], dated)
    return (chosen[0].id, "nothing") if out is None else (out.id, "dates")


def _in_full(framework: Framework, keys: set[str]) -> set[str]:
    """Keys, and where one stands in a part of a program without the call that it is given to, that call's name, too:
    "full_finetuning" is from_pretrained.full_finetuning."""
    calls = [known for known in framework.settings if "." in known]
    whole = {key: [one for one in calls if one.endswith(f".{key}")] for key in keys if key not in framework.settings}
    return {*keys, *(found[0] for found in whole.values() if len(found) == 1)}


def _newest_out(eras: Sequence[Era], dated: str) -> Era | None:
    """The newest era that was out on a day, else the oldest, since none ran before it; None where nothing tells."""
    known = sorted((era for era in eras if era.released), key=lambda era: era.released)
    if not dated or not known:
        return None
    return max((era for era in known if era.released <= dated), key=lambda era: era.released, default=known[0])


def absent(framework: Framework, era: str, keys: Iterable[str]) -> list[str]:
    """Keys that the dialect knows and that its era `era` does not have, sorted."""
    known = {key: framework.settings.get(key) for key in keys}
    return sorted(
        k for k, fact in known.items() if fact is not None and not fact.elsewhere and fact_in(fact, era) is None
    )


def _names_a_folder(era: Era, paths: Sequence[str], only: str = "*") -> bool:
    """Whether a path has one of the era's names, of those that fit `only`: "*.py" are programs."""
    parts = {part.lower() for path in paths for part in (*path.split("/"), path)}
    names = [folder.lower() for folder in era.folders if fnmatchcase(folder, only)]
    return any(fnmatchcase(part, name) for name in names for part in parts)


def _runs_with(era: Era, libraries: Mapping[str, str]) -> bool:
    asked = {name: spec for name, spec in era.libraries.items() if name in libraries}
    return bool(asked) and all(version_in(spec, libraries[name]) for name, spec in asked.items())


def _marks_fit(era: Era, keys: set[str]) -> bool:
    if era.has and any_key(era.has, keys) is None:
        return False
    return not (era.lacks and any_key(era.lacks, keys) is not None)


_ANCESTORS = 6
"""Folders above the script in which the root of the tree is looked for; examples lie two to four deep."""
_ASSIGNED = regex(r"^(?:__version__|version)\s*(?::\s*str\s*)?=\s*['\"]([^'\"\n]{1,64})['\"]", re.MULTILINE)
_BARE = regex(r"\s*(v?\d[\w.+-]{0,63})\s*\Z")
_PROJECT = "pyproject.toml"
_TABLE = regex(r"^\[(?:project|tool\.poetry)\][ \t]*(?:#.*)?$.*?(?=^\[|\Z)", re.MULTILINE | re.DOTALL)


def checkout_version(framework: Framework, script: Path) -> str | None:
    """What the tree that the script lies in says of the framework's version; None where it is no tree of it."""
    folder = Path(os.path.abspath(script)).parent
    for root in [folder, *folder.parents][: _ANCESTORS + 1]:
        for text in _stated(framework, root):
            found = _BARE.match(text) or _ASSIGNED.search(text)
            if found and release_of(found.group(1)) is not None:
                return clean_line(found.group(1))
    return None


def _stated(framework: Framework, root: Path) -> Iterator[str]:
    """Texts of the files that would state it."""
    own = framework.package.replace("-", "_")
    for name in framework.checkout:
        if "/" in name or (root / own).is_dir():  # a bare VERSION is anybody's
            yield text_of(root / name)
    table = _TABLE.search(text_of(root / _PROJECT))  # other tables state versions of what it depends on
    project = table.group() if table is not None else ""
    if re.search(rf"^name\s*=\s*['\"]{re.escape(framework.package)}['\"]", project, re.MULTILINE | re.IGNORECASE):
        yield project
