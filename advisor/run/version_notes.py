"""Says what the version of the framework means for the launch: settings it lacks, another checkout, what is assumed."""

from __future__ import annotations

from advisor.hostile import clean_line
from advisor.knowledge.schema import Framework
from advisor.language import listed, mark, say
from advisor.rules.functions import release_of
from advisor.run.dialect import ASSUMED_BY, MOST_NAMED, Recognised, absent
from advisor.run.natives import in_era, native
from advisor.script.launch import Launch

_TOLD_BY = {
    "libraries": mark("by the versions of its libraries, {era}"),
    "frames": mark("by the files that the traceback names, {era}"),
    "dates": mark("by the log's age ({day} at the latest) {era}"),
}


def title_of(recognised: Recognised) -> str:
    """What the run is called: a framework, a project that carries its code, or one that is not known."""
    framework, project = recognised.framework, recognised.project
    if framework is not None:
        carried = project is not None and project.built_on in (framework.framework, framework.part_of)
        told = {"project": project.name if project is not None else "", "framework": framework.title}
        return say("{project}, built on {framework}", **told) if carried else framework.title
    if project is None:
        return say("unknown framework")
    return say("{project}, whose code is not known here", project=project.name)


def version_notes(recognised: Recognised, launch: Launch | None) -> tuple[str, ...]:
    """Sentences for the run: settings that this era lacks with their names there, and an era that was assumed."""
    framework = recognised.framework
    if framework is None or launch is None:
        return _assumed(recognised) if recognised.era_told_by == "dates" else ()
    set_here = dict.fromkeys(native(setting.key) for setting in launch.settings if setting.effective)
    strangers = absent(framework, recognised.era, set_here)
    notes = [_stranger(key, framework, recognised) for key in strangers[:MOST_NAMED]]
    if len(strangers) > MOST_NAMED:
        left = listed(strangers[MOST_NAMED : MOST_NAMED + 8])
        era = _era(framework, recognised.era)
        notes.append(say("Neither does {framework} have {settings}.", framework=era, settings=left))
    for key in set_here:
        fact = framework.settings.get(key)
        if fact is not None and fact.elsewhere and not in_era(fact, recognised.era):
            told = {"key": key, "framework": _era(framework, recognised.era), "where": fact.elsewhere}
            notes.append(say("{key} in {framework}: {where}.", **told))
    return (*notes, *_of_checkout(recognised, framework), *_assumed(recognised))


def newer_than_read(recognised: Recognised) -> tuple[str, ...]:
    """A doubt where the version in force is newer than what the dialect was read up to."""
    framework = recognised.framework
    read = framework.newest_read if framework is not None else None
    if framework is None or read is None or recognised.version is None:
        return ()
    version, known = release_of(recognised.version), release_of(read.version)
    if version is None or known is None or version <= known:
        return ()
    told = {"framework": framework.title, "version": recognised.version, "known": read.version, "month": read.month}
    return (
        say(
            "{framework} {version} is newer than what is known ({known}, {month}): settings may have moved.",
            **told,
        ),
    )


def _of_checkout(recognised: Recognised, framework: Framework) -> tuple[str, ...]:
    """Which version the source tree around the script has, where that counts or where another is in force."""
    here, counts = recognised.checkout, recognised.version
    if here is None or counts is None:
        return ()
    told = {"framework": framework.title, "version": here}
    if here == counts:
        return (say("{framework} is {version} by the checkout that the script lies in.", **told),)
    if release_of(here) == release_of(counts):
        return ()
    return (
        say("The script lies in a checkout of {framework} {version}; what counts is {other}.", **told, other=counts),
    )


def other_name(framework: Framework, key: str, era: str) -> str:
    """What a setting is called in `era`, by the dialect's table of names, read both ways; "" where nothing says."""
    older = {new: old for old, new in framework.renamed.items()}
    for table in (framework.renamed, older):
        name = table.get(key, "")
        for _ in range(4):
            fact = framework.settings.get(name)
            if fact is not None and in_era(fact, era):
                return name
            name = table.get(name, "")
    return ""


def _stranger(key: str, framework: Framework, recognised: Recognised) -> str:
    name, where = clean_line(key, 100), _era(framework, recognised.era)
    called = other_name(framework, key, recognised.era)
    if called:
        return say(
            "{key} is not a setting of {framework}: there it is called {name}.", key=name, framework=where, name=called
        )
    eras = framework.settings[key].eras
    span = eras[0] if len(eras) == 1 else say("{first} to {last}", first=eras[0], last=eras[-1])
    return say("{key} is not a setting of {framework}: it exists in {eras} only.", key=name, framework=where, eras=span)


def _era(framework: Framework, era: str) -> str:
    return f"{framework.title} {era}".strip()


def _assumed(recognised: Recognised) -> tuple[str, ...]:
    framework = recognised.framework
    if framework is None or len(framework.eras) < 2 or recognised.era_told_by not in ASSUMED_BY:
        return ()
    by = _TOLD_BY.get(recognised.era_told_by)
    era = recognised.era if by is None else say(by, era=recognised.era, day=recognised.dated)
    told = {"framework": framework.title, "era": era, "package": framework.package}
    text = mark("Nothing tells the version of {framework}: {era} is assumed. --lib {package}=VERSION settles which "
                "settings and defaults hold.")  # fmt: skip
    return (say(text, **told),)
