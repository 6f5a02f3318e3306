"""Refuses a change that the program would not get: one that nobody reads there, that it stops at or changes again.

Asked is what stands between the words of a launch and the value that its program uses: the parser of its Python file
and what that does to the options afterwards, hydra's own config and sweeps, files that must agree with the trainer.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.knowledge.key_space import key_space
from advisor.knowledge.schema import Agreement, ConfigFile, Framework, ModelFact
from advisor.language import listed, mark, say
from advisor.machine.inventory import Machine
from advisor.regex import regex
from advisor.run.build import RunInputs, build_run
from advisor.run.constraints import newly_broken, newly_stopped, no_effect
from advisor.run.dialect import Recognised
from advisor.run.natives import default_of, native
from advisor.run.own_config import call_of_config, own_config, own_keys
from advisor.run.program_options import program_of
from advisor.run.unknown_keys import has_key, longer_names
from advisor.run.values import NOTHING
from advisor.script.config_files import unreadable
from advisor.script.document import Document, EditRefused, EditRequest, Rewrite, ScriptError, Setting, refused
from advisor.script.edit import rewritten
from advisor.script.files import Files, load
from advisor.script.keyed import read_keyed
from advisor.script.launch import Launch, Script
from advisor.script.python_file import parsed, takes_option
from advisor.script.python_later import changed_later
from advisor.script.python_options import is_configurator, stopped_by
from advisor.script.python_parser import real, refuses
from advisor.script.python_tree import imports
from advisor.script.reader import FOLLOWED

_OPEN = ("+", "~", *FOLLOWED)
"""What a key begins with that says itself that it is new, or that belongs to another file."""
_RUNS_SEVERAL = ("-m", "--multirun")
_CONFIGS = (".py", ".yaml", ".yml", ".json", ".toml")
_SWEEPS = "hydra.sweeper.params"
_REFERS = regex(r"[$`*]|\{\{")
"""In a value that something else fills in."""
_NO_NUMBERS = NOTHING | {"auto"}
_SEVERAL = ("[", "(", "{")


def in_its_file(
    script: Script, index: int, wanted: EditRequest, found: Setting | None, framework: Framework | None
) -> EditRequest:
    """A change, in the launch's config file where the Python file that it runs takes no such option.

    `found`: the setting in force, `framework`: None where it is unknown. Raises EditRefused where no file has the key:
    it stands in the Python file, or goes by another name.
    """
    launch, given = script.launches[index], found is not None and found.origin == "command"
    program = program_of(script, index)
    if program is not None and any(module == "fire" for module, _ in imports(parsed(program.data))):
        wanted = replace(wanted, value={"true": "True", "false": "False"}.get(str(wanted.value), wanted.value))
    if wanted.kind != "setting" or wanted.in_file or given or wanted.key.startswith(_OPEN):
        return wanted
    if framework is not None and framework.syntax == "yaml":
        return replace(wanted, in_file=True)
    call = call_of_config(program) if program is not None else None
    if call is not None and call.keywords:
        return replace(wanted, form=wanted.form or "assignments")
    if found is not None and found.origin == "file" and launch.argv and framework is None:
        rivals = {one.span.path for one in launch.settings if one.key == found.key and one.span is not None}
        if len(rivals) > 1:
            raise refused(
                "{key} stands in {files}, and nothing tells which of them wins.",
                wanted.key,
                files=listed(sorted(rivals)),
            )
        return replace(wanted, in_file=True)  # how its command would take it nobody knows
    named = any(str(word).endswith((".yaml", ".yml", ".json")) for word in launch.loose)
    if call is not None:
        return replace(wanted, form=wanted.form or "assignments")
    if program is not None and is_configurator(parsed(program.data)):
        return replace(wanted, form="joined")
    if program is None or takes_option(program, wanted.key, configured=named) is not False:
        later = changed_later(program.path, native(wanted.key)) if program is not None and found is not None else None
        return replace(wanted, in_file=later is not None and later.any_key)  # its config file wins over the command
    if found is not None and found.origin == "file":
        return replace(wanted, in_file=True)
    bare = wanted.key.lstrip("-")
    longer = [one for one in launch.effective() if one.lstrip("-").replace("-", "_").endswith(f".{bare}")]
    if longer:
        raise refused("{key} is no whole name here: {longer}?", bare, longer=listed(longer[:3]))
    raise refused(
        "{script} runs {file}: that file has the settings and is the one to change.",
        script=script.documents[0].path,
        file=program.path,
    )


def refuse_unread(script: Script, index: int, key: str, recognised: Recognised, files: Sequence[ConfigFile]) -> None:
    """Refuse a key that the launch does not have yet, unless something says that it is read. Raises EditRefused."""
    launch, framework, bare = script.launches[index], recognised.framework, native(key)
    if key.startswith(_OPEN):
        return
    told = {"key": clean_line(key), "file": clean_line(str(script.documents[0].path))}
    known = framework is not None and _listed(framework, launch, bare, own=recognised.own_program)
    if longer := longer_names(framework, launch, bare, known):
        raise refused("{key} is no whole name here: {longer}?", longer=listed(longer), **told)
    if not launch.argv and (other := _of_another(script.documents[0], files)) is not None:
        raise refused(
            "{file} is read by {program}, which takes no {key}: set it in the command.", program=other, **told
        )
    space = key_space(framework.framework) if framework is not None else None
    if framework is not None and space is not None and not known and recognised.own_program:
        stops = say("{framework} has no setting {key}, and would stop at it.", framework=framework.title, **told)
        passes = say("{framework} has no setting {key}: it would have no effect.", framework=framework.title, **told)
        raise EditRefused(stops if space.refuses else passes)
    program = program_of(script, index)
    if program is not None and (call := call_of_config(program)):
        keys = own_keys(script, index)
        if bare in (keys or ()):
            return
        meant = [one for one in sorted(keys or ()) if one.endswith(f".{bare}")]
        if meant:
            raise refused("{key} is no whole name here: {longer}?", longer=listed(meant[:3]), **told)
        if known and keys is None and "." in bare:
            return
        if keys is not None and call.keywords:
            raise refused(
                "The config of {program} has no {key}, and hydra stops at it: +{key} adds one.",
                program=program.path.name,
                **told,
            )
    elif known or (program is not None and takes_option(program, key)):
        return
    source = script.documents[0] if script.documents[0].kind == "python" else program
    lines = source.data.decode(errors="replace").splitlines() if source is not None else ()
    if (
        source is not None
        and (not launch.argv or source is program)
        and (there := [n for n, line in enumerate(lines, 1) if _spelled(bare).search(line.partition("#")[0])])
    ):
        raise refused(
            "{key} stands in {places}, and nothing tells which command gets it: change it there by hand.",
            places=listed(f"{clean_line(str(source.path))}:{n}" for n in there[:5]),
            **told,
        )
    if launch.argv:
        raise refused(
            "Nothing tells that {program} takes {key}: add it by hand if it does.",
            program=clean_line(launch.program) or told["file"],
            **told,
        )
    raise refused("{file} has no {key}, and nothing tells that its program reads one.", **told)


def _listed(framework: Framework, launch: Launch, key: str, *, own: bool) -> bool:
    """Whether a launch's program has a key, as far as its framework's list tells: what is handed on, and what a
    launcher's file has, is no option of a command."""
    if not launch.argv or framework.syntax != "argparse":
        return has_key(framework, key)
    fact, counts = framework.settings.get(key), framework.topology.counted_by if framework.topology is not None else ()
    if key in counts or (fact is not None and fact.only_in):
        return False
    space = key_space(framework.framework)
    return has_key(framework, key, listed_alone=not own or (space is not None and "*.*" in space.open))


def refuse_unlike(script: Script, after: Script, index: int, wanted: Sequence[EditRequest], recognised: Recognised,
                  files: Sequence[ConfigFile]) -> None:  # fmt: skip
    """Refuse what a launch would not be run with, though its words say so. Raises EditRefused."""
    before, launch = script.launches[index], after.launches[index]
    framework, settings = recognised.framework, [item for item in wanted if item.kind == "setting"]
    program = program_of(script, index)
    if (why := unreadable(before, script.documents[0].path.parent)) and settings:
        raise EditRefused(why)
    for item in settings:
        if item.key.startswith(FOLLOWED) or item.value is None:
            continue
        _refuse_swept(script, before, item, program)
        if not recognised.own_program:
            _refuse_rivals(script, launch, item, program)
        _refuse_type(framework, item)
        if program is None:
            continue
        words = launch.argv if len(launch.argv) != len(before.argv) or item.key in before.effective() else ()
        if words and (why := refuses(parsed(program.data), item.key, item.value, words)):
            raise EditRefused(why)
        numbers = [_options_of(one) for one in (before, launch)]
        if (line := stopped_by(parsed(program.data), native(item.key).replace("-", "_"), *numbers)) is not None:
            raise refused(
                "Line {line} of {file} stops the run with this {key}: change both by hand.",
                item.key,
                line=line,
                file=program.path.name,
            )
        known, now = {framework.package if framework is not None else ""}, launch.effective().get(item.key)
        in_file = before.argv == launch.argv and now is not None and now.origin == "file" and now.span is not None
        config = os.path.basename(now.span.path) if in_file and now and now.span else ""
        if not recognised.own_program and (later := changed_later(program.path, native(item.key), known, config)):
            raise EditRefused(later.told(item.key))
    for fact in files:
        for item in settings:
            _refuse_replaced(script, before, item.key, fact)
    for fixed, _, rule in _disagreements(script, after, index, settings, recognised, files):
        shown = fixed.text if fixed.resolved else say("unknown")
        raise refused(
            '{fixed} is {value}, which {key} must agree with: write "auto" there first.',
            fixed=fixed.key,
            value=shown,
            key=listed(rule.of),
        )


def _spelled(key: str, behind: str = r"(?![\w-])") -> re.Pattern[str]:
    """A key as a text holds it, with dashes or underscores."""
    return regex(rf"(?<![\w.-])(?:--)?{'[-_]'.join(map(re.escape, re.split('[-_]', key)))}{behind}")


def _refuse_rivals(script: Script, launch: Launch, item: EditRequest, program: Document | None) -> None:
    """Refuse a setting that another word or the environment holds, too, where the program may take it from there."""
    holds = _spelled(native(item.key), r"[\"']?\s*[:=]\s*[\"']?([\w.+-]+)")
    words, now = [word or "" for word in launch.argv], launch.effective()
    own = {
        key for key, one in now.items() if native(key) == native(item.key) and (item.in_file or one.value == item.value)
    }
    spelled = [word.partition("=")[0].lstrip("+") in own for word in words]
    at = max((n for n, is_own in enumerate(spelled) if is_own), default=len(words))
    data = program.data.decode(errors="replace") if program is not None else ""
    reads = re.search(rf"[\"']{re.escape(native(item.key))}[\"']", data) is not None  # cfg.get("lr", args.lr)
    alone = program is not None and takes_option(program, item.key) is True and not reads
    alone = alone and "configurator" not in data  # nanoGPT's: of files and options the last one wins
    beside = {one.span.path for key, one in now.items() if one.span is not None and (":" in key or key in own)}
    around = [(f"${key}", text) for key, text in launch.environment.items() if not {*text.split()} <= {*words}]
    for where, text in [*((word, word) for n, word in enumerate(words) if not spelled[n]), *around]:
        name = text.rpartition("=")[2]
        if name.endswith(_CONFIGS) and (where[:1] == "$" or ((reads or where in words[at:]) and not alone)):
            found = Files().candidates(name, script.documents[0].path.parent, launch.folder)
            with suppress(ScriptError, IndexError):
                text = text if str(found[0]) in beside else load(found[0], "yaml").data.decode(errors="replace")
        if (told := holds.search(text)) is not None and told[1] != item.value:
            raise refused("{where} holds {key}, too, and may win over it: change both by hand.", item.key, where=where)


def refuse_idle(
    script: Script, after: Script, index: int, keys: Sequence[str], recognised: Recognised, models: Sequence[ModelFact]
) -> tuple[str, ...]:
    """Refuse a new key that nothing reads in this kind of training, and what breaks a demand of the framework's own
    that held before: it would stop. Says of a key that has no effect here why. Raises EditRefused.
    """
    framework, before, launch = recognised.framework, script.launches[index], after.launches[index]
    if framework is None:
        return ()
    old, new = (build_run(RunInputs(recognised, one, Machine(), models)) for one in (before, launch))
    program, there = program_of(script, index), {*map(native, before.effective())}
    told = {"framework": framework.title}
    idle: list[str] = []
    for key in map(native, keys):
        fact = framework.settings.get(key)
        own = program is not None and takes_option(program, key)
        if fact is not None and key not in there and not own and old.natives.is_idle(fact):
            if longer := [one for one in there if one.endswith(f".{key}")]:
                raise refused("{key} is no whole name here: {longer}?", key, longer=listed(longer[:3]))
            raise refused("{framework} does not read {key} in this training.", key, **told)
        one = new.natives.values.get(key)
        if one is not None and one.fact is not None and one.fact.type == "bool" and one.value is None and one.given:
            told_of = {"key": clean_line(key), "value": clean_line(one.text or "", 40)}
            if (one.text or "").lower() not in NOTHING and not _REFERS.search(one.text or ""):
                idle.append(say("{key} is true or false as far as is known here: {value} may be refused.", **told_of))
        if why := no_effect(new, key):
            unseen = fact is not None and all(one.eras for one in fact.no_effect_when)
            unseen = unseen and recognised.era_told_by not in ("version", "user")
            told_as = mark("Some versions ignore {key}: {why}.") if unseen else mark("{key} has no effect here: {why}.")
            idle.append(say(told_as, key=clean_line(key), why=why.rstrip(".")))
    if stops := newly_stopped(old, new, [native(key) for key in keys]):
        raise refused(
            "{framework} would stop: {why}. What must go together is set in one command.",
            why=stops[0].rstrip("."),
            **told,
        )
    idle += [say("This may stop the run: {why}.", why=why.rstrip(".")) for why in newly_broken(old, new, keys)]
    return tuple(idle)


def arriving(
    index: int,
    recognised: Recognised,
    files: Sequence[ConfigFile],
    script: Script,
    wanted: Sequence[EditRequest],
    *,
    alone: bool = False,
) -> tuple[tuple[Rewrite, ...], Sequence[EditRequest], Script]:
    """The documents with the changes in one launch and in what must agree with them, all that was changed, and the
    script as it is then read. Raises EditRefused where its program would not get one.
    """
    for override in (False, True):  # a word of its own wins over files that are named behind the first
        (done, after), asked = rewritten(script, index, wanted, alone=alone, override=override), wanted
        if along := agreeing(script, after, index, wanted, recognised, files):
            asked = [*wanted, *along]
            done, after = rewritten(script, index, asked, alone=alone, override=override)
        try:
            refuse_unlike(script, after, index, asked, recognised, files)
            break
        except EditRefused:
            if override or not script.launches[index].argv:
                raise
    return done, asked, after


def _options_of(launch: Launch) -> dict[str, float]:
    found = {native(key).replace("-", "_"): _number(setting.text) for key, setting in launch.effective().items()}
    return {key: number for key, number in found.items() if number is not None}


def _of_another(document: Document, files: Sequence[ConfigFile]) -> str | None:
    """The program whose file a YAML, JSON or TOML document is; None where it is none that is known."""
    if document.kind in ("shell", "python"):
        return None
    try:
        keyed = read_keyed(document)
    except ScriptError:
        return None
    names = (*keyed.tables, *(entry.key for entry in keyed.entries))
    top = {name.partition(".")[0].partition("[")[0] for name in names}
    return next((fact.program for fact in files if top.issuperset(fact.has)), None)


def _refuse_swept(script: Script, launch: Launch, item: EditRequest, program: Document | None) -> None:
    """Refuse a key that hydra's sweeper gives each run a value of its own."""
    several = not launch.argv or not {*_RUNS_SEVERAL}.isdisjoint(map(str, launch.argv))
    documents = [one for one in script.documents if one.kind == "yaml"]
    config = own_config(program, launch) if program is not None else None
    swept: dict[str, str] = {s.key: s.text for s in launch.settings}
    for document in [*documents, *([config] if config is not None else [])]:
        try:
            entries = read_keyed(document).entries
        except ScriptError:
            continue
        swept |= {entry.key: str(entry.value) for entry in entries if entry.key.startswith("hydra.")}
    several = several or swept.get("hydra.mode", "").upper() == "MULTIRUN"
    bare = native(item.key)
    here = f"{_SWEEPS}.{bare}" in swept or bare in swept.get(_SWEEPS, "").replace("{", " ").replace(":", " ").split()
    if several and here:
        raise refused("{key} takes several values, one for each run: change it by hand.", bare)


def _refuse_type(framework: Framework | None, item: EditRequest) -> None:
    """Refuse what is none of the values that the setting takes: no number, or a share above the whole."""
    fact = framework.settings.get(native(item.key)) if framework is not None else None
    text, told = str(item.value).strip().strip("\"'"), {"value": item.value}
    if fact is None or not isinstance(item.value, str) or text.lower() in _NO_NUMBERS or _REFERS.search(text):
        return
    number = _number(text)
    if fact.type in ("int", "float") and number is None and not text.startswith(_SEVERAL):
        raise refused("{key} takes a number, which {value} is not.", item.key, **told)
    if fact.type == "int" and number is not None and number != int(number):
        raise refused("{key} takes a whole number, which {value} is not.", item.key, **told)
    if fact.unit.startswith("fraction") and number is not None and not 0 <= number <= 1:
        raise refused("{key} is a share: 1 is all of it", item.key)


def agreeing(
    script: Script,
    after: Script,
    index: int,
    wanted: Sequence[EditRequest],
    recognised: Recognised,
    files: Sequence[ConfigFile],
) -> list[EditRequest]:
    """The numbers beside the trainer's own settings that must change along with these, where they can be edited."""
    out, launcher = [], script.launches[index].launcher
    for told, needed, _ in _disagreements(script, after, index, wanted, recognised, files):
        option = f"--{told.key.rpartition('.')[2]}"
        value = str(int(needed)) if needed is not None and needed == int(needed) else repr(needed)
        if told.key.partition(":")[0] in {item.key.lstrip("-") for item in wanted}:
            continue  # the file itself is another one: it may serve other runs
        if needed is not None and told.span is not None:
            out.append(EditRequest(told.key, value))
        elif needed is not None and option in launcher:
            out.append(EditRequest(option, value, kind="launcher"))
    return out


def _disagreements(
    script: Script,
    after: Script,
    index: int,
    wanted: Sequence[EditRequest],
    recognised: Recognised,
    files: Sequence[ConfigFile],
) -> Iterator[tuple[Setting, float | None, Agreement]]:
    """What a file beside the trainer's own settings contradicts, and contradicted not before; with the number that it
    would have to be, where that is known.
    """
    framework, era = recognised.framework, recognised.era
    launches = script.launches[index], after.launches[index]
    asked = {item.key.lstrip("-").replace("-", "_") for item in wanted if item.kind == "setting"}
    name = framework.framework if framework is not None else ""
    for fact in [one for one in files if framework is None or name in one.frameworks]:
        old, new = (_beside(script, launch, fact) for launch in launches)
        for rule in fact.agrees:
            told, before = new.get(rule.key), old.get(rule.key)
            if told is None or told.text == "auto" or asked.isdisjoint({*rule.of, told.key, fact.prefix.rstrip(":")}):
                continue
            was, product = (_product(launch, rule, framework, era) for launch in launches)
            number = _number(told.text) if told.resolved else None
            needed = product if number is not None else None
            if needed is not None and rule.processes:  # of how many nobody knows: it agreed before
                agreed = _number(before.text) if before is not None else None
                needed = agreed * needed / was if agreed is not None and was else None
            moved = product != was or before is None or told.text != before.text
            if number != needed if needed is not None else moved:
                yield told, None if told.text.lower() in ("true", "false") else needed, rule


def _refuse_replaced(script: Script, launch: Launch, key: str, fact: ConfigFile) -> None:
    """Refuse an option that the program of a file beside the trainer's replaces by values of its own."""
    names = {native(key).replace("-", "_")}
    for told, one in _beside(script, launch, fact).items() if fact.replaces else ():
        if told.startswith(f"{fact.replaces}.") and one.text.lstrip("-").replace("-", "_") in names:
            raise refused("{program} replaces {key} itself ({told}).", key, program=fact.program, told=told)


def _beside(script: Script, launch: Launch, fact: ConfigFile) -> Mapping[str, Setting]:
    """What the launch's file of that kind says: followed, written as a dictionary, or named by a Python file."""
    option, settings = fact.prefix.rstrip(":"), launch.effective()
    heads = (fact.prefix, f"{option}.") if option else ()
    found = {key.removeprefix(head): one for key, one in settings.items() for head in heads if key.startswith(head)}
    name = settings.get(option)
    if found or name is None or not name.text.endswith(".json"):
        return found
    try:
        document = load(script.documents[0].path.parent / name.text, "json")
        return {one.key: Setting(one.key, str(one.value), "file", True) for one in read_keyed(document).entries}
    except ScriptError:
        return found


def _product(launch: Launch, rule: Agreement, framework: Framework | None, era: str) -> float | None:
    """The product of the trainer's settings; None where one is not known."""
    numbers = [*_numbers(launch, rule, framework, era)]
    known = [number for number in numbers if number is not None]
    return math.prod(known) if len(known) == len(numbers) else None


def _numbers(launch: Launch, rule: Agreement, framework: Framework | None, era: str) -> Iterator[float | None]:
    values = {native(key).replace("-", "_"): setting for key, setting in launch.effective().items()}
    for name in rule.of:
        setting, known = values.get(name), framework.settings.get(name) if framework is not None else None
        yield _number(setting.text if setting is not None else default_of(known, era) if known is not None else None)


def _number(value: object) -> float | None:
    """A text as a number, a truth value as 0 or 1; None where it is neither."""
    text = str(value).strip().lower()
    return {"true": 1.0, "false": 0.0}.get(text, real(text.replace("_", "")))
