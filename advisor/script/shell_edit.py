"""Edits a shell script: in place where one literal decides one setting, as an override at the launch elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.bash.syntax import Assignment
from advisor.bash.text import ByteRange, NotSet, OneWord, ShellValue, Varies, cut, joined, known, sources
from advisor.bash.words import Word
from advisor.bash.wrapped import FILLERS
from advisor.bash.writing import Site, is_safe, quote, within
from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.regex import regex
from advisor.script.arguments import DELETES, Argument
from advisor.script.config_files import OPTIONS
from advisor.script.document import ANEW, Changes, EditRequest, Value, comment_text, encoded, refused
from advisor.script.literal import target
from advisor.script.shell import ShellLaunch, ShellReading, setting_place

_GAP = regex(rb"(?:[ \t]|\\\r?\n|\r?\n)*\Z")
_KEY = regex(r"(\+\+|\+)?(.*)\Z", re.DOTALL)
_DEFAULT_INDENT = b"    "
_ARRAY = regex(rb"([A-Za-z_]\w*)\+?=\(")
_WORDS = regex(rb"\w+")
_NO_DASHES = tuple(dash.encode() for dash in "\u2010\u2011\u2012\u2013\u2014\u2212")
"""What word processors make of `-`."""
_MULTIRUN = ("--multirun", "-m")
_SWEEP = regex(r"(?:choice|range|interval|glob)\(|[^\[\]{}()'\",]+,")
"""What hydra takes for several values: a list of texts without brackets, or a sweep of its own grammar."""


class ShellEditor:
    def __init__(
        self,
        reading: ShellReading,
        launch: ShellLaunch,
        changes: Changes,
        override: bool = False,
        wanted: Sequence[EditRequest] = (),
        doc: int = 0,
    ) -> None:
        """`doc`: the number of the script that is changed: the one that is started, or one that it runs."""
        self.asked = {(one.kind == "launcher", one.key.lstrip("-")): one.value for one in wanted}
        self.reading = reading
        self.override = override
        self.launch = launch
        self.changes = changes
        self.doc = doc
        self.site = Site(reading.data[doc])
        self.commented: set[tuple[int, bytes]] = set()
        self.words = [
            place
            for word in launch.command.simple.words
            if isinstance(word, Word) and (place := launch.command.text.place(word.start, word.end, "plain"))
        ]

    def setting(self, wanted: EditRequest) -> None:
        marker, key = self.spelled(wanted.key)
        naming = [argument for argument in self.launch.arguments if argument.key in (key, DELETES + key)]
        existing = [argument for argument in naming if argument.key == key]
        if wanted.value is None:
            self.remove(existing, wanted)
        elif naming and naming[-1].key != key:
            raise refused("{key} is taken away by {deletion}; remove that by hand first.", key, deletion=DELETES + key)
        elif existing and self.is_swept(existing[-1]):
            raise refused("{key} takes several values, one for each run: change it by hand.", key)
        elif existing and (why := self.set_anew(existing[-1])):
            raise refused(ANEW, key, why=why)
        elif existing:
            self.change(existing[-1], wanted, wanted.value)
        else:
            new = wanted.form == "additions" and key not in self.launch.launch.effective()
            self.add("" if key.startswith("-") else marker or "++" * new, key, wanted, wanted.value)

    def is_swept(self, argument: Argument) -> bool:
        """Whether hydra starts a run for each of the argument's values: `--multirun n=4,8`, `n=range(1,4)`."""
        several = any(one.key in _MULTIRUN and one.style == "option" for one in self.launch.arguments)
        return several and isinstance(argument.value, str) and bool(_SWEEP.match(argument.value))

    def set_anew(self, argument: Argument) -> str:
        """Why the argument is another one each time that the command runs; "" where it is not."""
        if isinstance(argument.reason, Varies):
            return argument.reason
        homes = [self.launch.command.fields[index].home for index in argument.fields]
        raw = b" ".join(self.reading.data[home.doc][home.start : home.end] for home in homes if home is not None)
        value = raw.partition(b"=")[2] if argument.style != "option" else raw
        anew, place = self.launch.command.anew, setting_place(self.reading, self.launch, argument)
        listed_in = [self.listed_in(home) for home in homes if home is not None and home not in self.words]
        for name in [*(_WORDS.findall(value) if b"$" in value else ()), *filter(None, listed_in)]:
            loop = anew.get(name)
            inside = loop is not None and place is not None and loop.start <= place.start < loop.end
            if name in anew and not inside:
                return say("${name} is set anew in a loop", name=name.decode())
        return ""

    def listed_in(self, home: ByteRange) -> bytes:
        """The name of the array among whose words a place stands; "" where it is in none."""
        found = list(_ARRAY.finditer(self.reading.data[home.doc], max(0, home.start - 4000), home.start))
        return found[-1].group(1) if found else b""

    def spelled(self, key: str) -> tuple[str, str]:
        """The marker and the key as this launch spells it: `zero_stage` is `--zero_stage` where options are used."""
        found = _KEY.match(key)
        marker, bare = (found.group(1) or "", found.group(2)) if found else ("", key)
        keys = {argument.key for argument in self.launch.arguments}
        if bare in keys or bare.startswith("-"):
            return marker, bare
        kebab = f"--{bare.replace('_', '-')}"
        return marker, next((known for known in (f"--{bare}", f"-{bare}", kebab) if known in keys), bare)

    def change(self, argument: Argument, wanted: EditRequest, value: Value) -> None:
        if argument.value == value:
            return
        place = setting_place(self.reading, self.launch, argument)
        alone = (
            not self.override
            and place is not None
            and place.doc == self.doc
            and not self.others(place, argument.fields, value)
        )
        alone = alone and not self.may_be_outdone(argument)
        if not (alone and self.in_place(argument, wanted, value)):
            marker = "++" if argument.marker == "+" else argument.marker
            self.add(marker, argument.key, wanted, value, argument.style == "joined")

    def others(self, place: ByteRange, indices: tuple[int, ...], value: Value | None) -> tuple[str, ...]:
        """What else a literal decides, beside what is to have the same value in this launch."""
        own, start = self.reading.keys.items(), self.launch.found.arguments
        named = [(at, (at < start, key.lstrip("-"))) for (number, at), key in own if number in self.launch.group]
        alike = (at for at, key in named if key in self.asked and self.asked[key] == value)
        return self.reading.shared(place, self.launch, (*indices, *alike))

    def may_be_outdone(self, argument: Argument) -> bool:
        """Whether words behind an argument, of which nothing is known, may set it again: `key=4 $(cat more.txt)`.
        What comes from outside (`$EXTRA`) is none of the script's, and what is one word, or a path, is no option.
        """
        behind = [word.pieces for word in self.launch.command.fields[argument.fields[-1] + 1 :] if word.pieces]
        known_kinds = (NotSet, OneWord)
        return any(
            first.reason and not first.quoted and not first.sources() and not isinstance(first.reason, known_kinds)
            and not (first.text and not first.text.startswith(b"-")) and not joined(tuple(more)).startswith(b"/")
            for first, *more in behind
        )  # fmt: skip

    def in_place(self, argument: Argument, wanted: EditRequest, value: Value) -> bool:
        """Edit the deciding literal; False where the new value cannot stand there."""
        if isinstance(value, str) and len(argument.values) == 1:
            return self.replace_literal(argument.values[0], value, wanted, argument.style == "option")
        if argument.style == "assignment":
            text = list_text(value) if isinstance(value, tuple) else None
            return text is not None and self.replace_literal(argument.values[0], text, wanted, False)
        if argument.style == "joined":
            return False
        return self.replace_values(argument, wanted, value)

    def replace_literal(
        self, pieces: ShellValue, value: str, wanted: EditRequest, alone: bool, *, own_word: bool = False
    ) -> bool:
        found = target(pieces, self.reading.data)
        if found is None or found.place.doc != self.doc:
            return False
        start, end = found.place.start, found.place.end
        own = own_word or any(word.doc == self.doc and word.start <= start and end <= word.end for word in self.words)
        context = "plain" if found.quotes else found.place.context
        new = within(value, context, own_word=own, alone=alone and context == "plain")
        if new is None:
            return False
        self.write(found.place, encoded(new), wanted)
        return True

    def replace_values(self, argument: Argument, wanted: EditRequest, value: Value) -> bool:
        """The words after an option: other words, none, or one instead of several."""
        fields = self.launch.command.fields
        homes = [fields[index].home for index in argument.fields]
        if any(home is None or home.doc != self.doc or home.context not in ("plain", "heredoc") for home in homes):
            return False
        first, last = homes[0], homes[-1]
        if first is None or last is None or last.end < first.end:
            return False
        texts = [value] if isinstance(value, str) else list(value)
        own = all(any(word == home for word in self.words) for home in homes)
        if not own and not all(is_safe(text) for text in texts):
            return False
        if self.reading.shared(first, self.launch, argument.fields):
            return False
        new = b"".join(b" " + encoded(quote(text)) for text in texts)
        self.changes.replace(self.doc, first.end, last.end, new, wanted.key, (min(1, len(new)), len(new)))
        self.comment(wanted, first.start)
        return True

    def launcher_option(self, wanted: EditRequest) -> None:
        """Change an option that stands before the program, where its literal decides nothing else."""
        command, value = self.launch.command, wanted.value
        start, end = self.launch.found.launcher
        at = [i for i in range(start, end) if command.fields[i].text.partition(b"=")[0] == wanted.key.encode()]
        fields = command.fields[at[-1]].pieces if at else ()
        if at and joined(fields) == wanted.key.encode():
            at, fields = [at[-1] + 1], command.fields[at[-1] + 1].pieces
        else:
            fields = cut(fields, len(wanted.key) + 1)
        found = target(fields, self.reading.data) if at else None
        shared = found is None or self.others(found.place, (at[-1],), value)
        if not isinstance(value, str) or shared or not self.replace_literal(fields, value, wanted, False):
            raise refused("{key} is an option of the launcher: change it by hand.", wanted.key)

    def write(self, place: ByteRange, new: bytes, wanted: EditRequest) -> None:
        self.changes.replace(place.doc, place.start, place.end, new, wanted.key)
        self.comment(wanted, place.start)

    def remove(self, existing: list[Argument], wanted: EditRequest) -> None:
        if not existing:
            if any(setting.key.lstrip("-") == wanted.key.lstrip("-") for setting in self.launch.launch.settings):
                raise refused("{key} is set in a config file; it cannot be taken away at the launch.", wanted.key)
            return
        for argument in existing:
            for index in argument.fields:
                self.remove_word(index, argument, wanted)
        home = self.launch.command.fields[existing[-1].fields[0]].home
        self.comment(wanted, 0 if home is None else home.start)

    def remove_word(self, index: int, argument: Argument, wanted: EditRequest) -> None:
        """Take one argument away, with the blanks and the line continuation before it."""
        home = self.launch.command.fields[index].home
        if home is None or home.doc != self.doc:
            raise refused("{key} comes out of a computed text; there is no word to take away.", wanted.key)
        others = self.reading.shared(home, self.launch, argument.fields)
        if others:
            told = clean_line(listed(others), 200)
            raise refused("{key} stands in text that also decides {others}.", wanted.key, others=told)
        gap = _GAP.search(self.reading.data[self.doc], max(0, home.start - 2000), home.start)
        start = gap.start() if gap else home.start
        self.changes.replace(self.doc, start, home.end, b"")

    def add(self, marker: str, key: str, wanted: EditRequest, value: Value, joined: bool = False) -> None:
        """Add an override behind the last argument, where it wins."""
        text, low, high = self.argument_text(marker, key, value, joined, wanted.form)
        simple, source = self.launch.command.simple, self.launch.command.text
        first, last = self.launch.command.fields[0], self.launch.command.fields[-1]
        if first.text in FILLERS and not known(last.pieces) and b"{}" not in source.data[simple.start : simple.last]:
            raise refused(
                "{name} puts what it reads behind the last argument, where it would win over {key}.",
                key,
                name=first.text.decode(),
            )
        self.refuse_where_it_counts_not(key)
        if source.nested:
            self.add_nested(text, low, high, wanted)
            return
        place = source.place(simple.last, simple.last, "plain")
        if (place is None or place.doc != self.doc) and self.in_own_call(wanted, value):
            return
        here = [one for each in self.launch.arguments if each.key == key for v in each.values for one in sources(v)]
        if own := [one for one in here if one.doc == self.doc and (place is None or place.doc != self.doc)]:
            line, keys = self.reading.span(own[0]).line, listed(self.reading.shared(own[0], self.launch, ()))
            raise refused("Line {line} decides {keys}: change it by hand.", line=line, keys=keys)
        place = self.in_script(place)
        start = place.start - (simple.last - simple.start)
        lead = b" "
        if b"\n" in source.data[simple.start : simple.last]:  # not where YAML folds the lines into one
            line = self.site.data.rfind(b"\n", 0, place.start) + 1
            indent = self.site.indent(line) if line > start else b""
            lead = b" \\" + self.site.newline + (indent or _DEFAULT_INDENT)
        new = encoded(text)
        offset = len(lead)
        self.changes.replace(self.doc, place.start, place.start, lead + new, wanted.key, (offset + low, offset + high))
        self.comment(wanted, start)

    def in_own_call(self, wanted: EditRequest, value: Value) -> bool:
        """Put an override among the words that this call alone hands to a command which several share: `run a=1`."""
        marker, key = self.spelled(wanted.key)
        before = [argument.fields[-1] for argument in self.launch.arguments if argument.key == key]
        for index in range(len(self.launch.command.fields) - 1, max(before, default=0), -1):
            home = self.launch.command.fields[index].home
            if home is None or home in self.words or home.doc != self.doc or home.context not in ("plain", "nested"):
                continue
            text, low, high = self.argument_text(marker, key, value, False, wanted.form)
            plain = home.context == "plain" or all(map(is_safe, text.split(" ")))
            if not plain or self.reading.shared(home, self.launch, (index,)):
                return False
            self.changes.replace(self.doc, home.end, home.end, b" " + encoded(text), wanted.key, (1 + low, 1 + high))
            self.comment(wanted, home.start)
            return True
        return False

    def refuse_where_it_counts_not(self, key: str) -> None:
        """Raises EditRefused where what stands last is no option, or is added to runs with configs of their own."""
        others = (argument for argument in self.launch.arguments if argument.key not in OPTIONS)
        taken = {index for argument in others for index in argument.fields}
        fields = self.launch.command.fields
        for index in range(self.launch.found.arguments, len(fields)):
            word = fields[index]
            if word.text == b"--" and known(word.pieces):
                raise refused("What stands behind `--` is no option: set {key} before it.", key)
            if word.text.startswith(_NO_DASHES):
                raise refused(
                    "{word} begins with a dash that no program takes for `-`: mend that first.",
                    word=clean_line(word.text.decode("utf-8", "replace"), 80),
                )
            home = word.home if index not in taken else None
            for name in _WORDS.findall(self.reading.data[home.doc][home.start : home.end]) if home is not None else ():
                if name in self.launch.command.anew:
                    raise refused(ANEW, key, why=say("${name} is set anew in a loop", name=name.decode()))

    def add_nested(self, text: str, low: int, high: int, wanted: EditRequest) -> None:
        """The command is a string that is run as shell text: only plain characters go in, on the same line."""
        at = self.nested_end()
        if at is None or not all(is_safe(word) for word in text.split(" ")):
            raise refused("The command is built from text at run time; there is no safe place for an override.")
        self.changes.replace(self.doc, at, at, b" " + encoded(text), wanted.key, (1 + low, 1 + high))
        self.comment(wanted, at)

    def nested_end(self) -> int | None:
        """Where an argument can be added to a command in a string: behind its last word, where that stands in the
        script, or before the quote that ends the string, where nothing follows the command in it.
        """
        simple, source = self.launch.command.simple, self.launch.command.text
        word = simple.words[-1]  # one that is put together ends elsewhere than the command does
        begin = word.start if word.end == simple.last else simple.last - 1
        home, place = source.home, source.place(begin, simple.last, "nested")
        if source.place(begin - 1, simple.last, "nested") is None:
            place = None  # a value of its own: what else is made of it nobody knows
        tail = source.place(simple.last - 1, simple.last, "nested")
        if place is not None and place.doc == self.doc and (home is None or home.start <= place.start < home.end):
            return place.end
        own = (len(self.launch.command.fields) - 1,)
        if place is not None and place.doc == self.doc and not self.reading.shared(place, self.launch, own):
            return place.end
        behind = source.place(simple.last, simple.last + 1, "nested") if simple.last < len(source.data) else None
        if behind is not None and behind.doc == self.doc and not self.reading.shared(behind, self.launch, own):
            return behind.start
        if home is None or home.doc != self.doc:
            return None
        if tail is not None and tail.doc == self.doc and home.start < tail.start and tail.end < home.end:
            return tail.end
        if simple.operator or simple.comment is not None:
            return None
        if source.data[simple.last :].strip(b" \t") or self.reading.data[self.doc][home.end - 1 : home.end] != b'"':
            return None
        return home.end - 1

    def argument_text(self, marker: str, key: str, value: Value, joined: bool, form: str = "") -> tuple[str, int, int]:
        """The words of a new argument, and the byte range of its value among them."""
        texts = [value] if isinstance(value, str) else list(value)
        styles = {argument.style for argument in self.launch.arguments if argument.key not in OPTIONS}
        options = not (
            form in ("assignments", "additions")
            and not any("." in one.key for one in self.launch.arguments if one.style != "assignment")
        )
        options = (
            options and "assignment" not in styles and ("option" in styles or "joined" in styles or "." not in key)
        )
        if key.startswith("-") or options:  # an absent key becomes `--key` where the launch has no `key=value` words
            name = key if key.startswith("-") else f"--{key}"
            if (joined or form == "joined") and len(texts) == 1:
                head, tail = f"{name}=", quote(texts[0]) if texts[0] else ""
            else:
                head, tail = (f"{name} ", " ".join(quote(text) for text in texts)) if texts else (name, "")
        else:
            shown = value if isinstance(value, str) else list_text(value)
            head, tail = f"{marker}{key}=", quote(shown) if shown else ""
        if not re.fullmatch(r"[+~]{0,2}[\w./@:\[\]-]+[= ]?", head):
            raise refused("{key} is not the name of a setting.", key)
        return head + tail, len(encoded(head)), len(encoded(head + tail))

    def in_script(self, place: ByteRange | None) -> ByteRange:
        """The place of a command. Raises EditRefused where that is not in the given script."""
        if place is None:
            raise refused("The command stands in another file, a string; edit that one.")
        if place.doc != self.doc:
            file = f"{self.reading.files.documents[place.doc].path}:{self.reading.span(place).line}"
            raise refused("The command stands in another file, {file}; edit that one.", file=file)
        return place

    def comment(self, wanted: EditRequest, offset: int) -> None:
        """One comment line above the statement that was edited."""
        if not wanted.comment:
            return
        text = comment_text(wanted.comment)
        at = self.site.line_above(offset)
        if (at, text) not in self.commented:
            self.commented.add((at, text))
            self.line(b"# " + text, offset)

    def line(self, text: bytes, offset: int, key: str = "", value: tuple[int, int] | None = None) -> None:
        """A whole new line above the statement with byte `offset`."""
        at = self.site.line_above(offset)
        indent = self.site.indent(at)
        shifted = None if value is None else (len(indent) + value[0], len(indent) + value[1])
        self.changes.replace(self.doc, at, at, indent + text + self.site.newline, key, shifted)

    def prefix(self, name: bytes) -> Assignment | None:
        """The assignment before the command that gives a variable to it alone."""
        found = [a for a in self.launch.command.simple.assignments if a.name == name]
        return found[-1] if found else None


def list_text(value: tuple[str, ...]) -> str:
    """Several values as one list of a `key=value` argument."""
    return "[" + ",".join(value) + "]"
