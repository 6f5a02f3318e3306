"""Lists every setting of launch scripts with the place where it is made, without a diagnosis."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.arguments import add_ascii, add_format, add_knowledge, add_list
from advisor.exits import Exit
from advisor.hostile import clean, clean_line
from advisor.language import say

if TYPE_CHECKING:
    from advisor.commands.from_log import Printed
    from advisor.knowledge import Knowledge
    from advisor.report.settings_report import Read
    from advisor.run.dialect import Recognised
    from advisor.script.launch import Script

RECOGNISED_IN = 200_000
"""Characters of a script that are searched for a framework's hints."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scripts", nargs="+", metavar="SCRIPT", help=say("launch script or config file"))
    add_list(parser, "--log", "LOG", say("fill what is open with the configuration that this log prints; repeatable"))
    add_knowledge(parser)
    add_ascii(parser)
    add_format(parser, "text", "json", "jsonl", "yaml")


def run(parsed: argparse.Namespace) -> int:
    """`jsonl` goes on at a script that cannot be read; the other formats stop there."""
    from advisor.commands.from_log import printed_in
    from advisor.commands.streams import emit, knowledge_of, usable
    from advisor.report.json_report import encode
    from advisor.report.settings_report import run_file, settings_json, settings_text

    knowledge = knowledge_of(parsed)
    logs = [Path(log) for log in parsed.log]
    printed = usable(lambda: printed_in(logs, knowledge)) if logs else None
    if parsed.format == "jsonl":
        for name in parsed.scripts:
            emit(encode(_one(name, knowledge, printed), indent=None) + "\n")
        return Exit.DONE
    named = [usable(lambda name=name: _read(name, knowledge, printed)) for name in parsed.scripts]  # type: ignore[misc]
    read = [one for each in named for one in (each, *_modules(each, knowledge, printed))]
    if parsed.format == "json":
        emit(encode(settings_json(read)) + "\n")
    elif parsed.format == "yaml":
        emit("---\n".join(run_file(each) for each in read))
    else:
        emit(settings_text(read), parsed.ascii)
    return Exit.DONE


def _one(name: str, knowledge: Knowledge, printed: Printed | None) -> dict[str, object]:
    from advisor.commands.streams import unreadable
    from advisor.report.settings_report import error_json, script_json
    from advisor.script.document import ScriptError

    try:
        return script_json(_read(name, knowledge, printed))
    except OSError as error:
        return error_json(name, unreadable(error))
    except (ScriptError, ValueError) as error:
        return error_json(name, str(error) or type(error).__name__)
    except Exception as error:  # noqa: BLE001 - the contract: one script that breaks us must not cost the answers to the others
        told = f"{type(error).__name__}: {error}"
        return error_json(name, say("this is a fault of the program, not of your file ({error})", error=told))


def _modules(read: Read, knowledge: Knowledge, printed: Printed | None) -> list[Read]:
    """The Python files that the launches of a script run, where the settings stand in them."""
    from advisor.request import config_module

    known = enumerate(recognised_in(read.script, knowledge))
    found = [config_module(read.script, index, recognised, knowledge) for index, recognised in known]
    there = {one.documents[0].path: one for one in found if one is not None}
    return [_of(str(path), module, knowledge, printed) for path, module in there.items()]


def _read(name: str, knowledge: Knowledge, printed: Printed | None) -> Read:
    from advisor.script.reader import read_script

    return _of(name, read_script(Path(name)), knowledge, printed)


def _of(name: str, script: Script, knowledge: Knowledge, printed: Printed | None) -> Read:
    from msgspec.structs import replace

    from advisor.report.settings_report import Read
    from advisor.run.unknown_keys import unknown_keys

    if printed is not None:
        from advisor.commands.from_log import filled

        script = replace(script, launches=tuple(filled(script.launches, printed)))
    known = recognised_in(script, knowledge)
    found = [each.framework for each in known]
    models = [
        next((key for key, fact in dialect.settings.items() if fact.knob == "model.path"), "") if dialect else ""
        for dialect in found
    ]
    words = [dialect.framework if dialect else "unknown" for dialect in found]
    unknown = {
        launch.index: unknown_keys(one.framework, one.era, launch, own=one.own_program)
        for one, launch in zip(known, script.launches, strict=True)
    }
    return Read(clean_line(name), script, tuple(words), tuple(models), unknown)


def recognised_in(script: Script, knowledge: Knowledge) -> list[Recognised]:
    """What is known of the framework of each launch of a script."""
    from advisor.request import classes_known
    from advisor.run.dialect import recognise
    from advisor.script.reader import with_trainers

    script = with_trainers(script, classes_known(knowledge.frameworks))
    text = clean(script.documents[0].data.decode(errors="replace"), RECOGNISED_IN)
    path = script.documents[0].path
    return [recognise(launch, text, (), {}, {}, knowledge.frameworks, (), path) for launch in script.launches]
