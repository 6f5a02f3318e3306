"""Writes one HTML page to send to colleagues: verdict, bars before and after, changes, diff, and the whole report.

The page holds no script and loads nothing; words from outside are shown as text.
"""

from __future__ import annotations

from html import escape
from itertools import groupby

from markdown_it import MarkdownIt

from advisor.language import say, spoken
from advisor.memory.cells import OWNERS, TITLES, Ledger, PhaseSum, Place
from advisor.memory.fit import ROOM_WORDS, capacity_of, room_of
from advisor.plan.plan import Plan
from advisor.redact import redact
from advisor.report import phrases
from advisor.report.markdown_report import markdown_parts
from advisor.report.sharing import shareable
from advisor.state import State
from advisor.units import show_gib
from advisor.words import PHASE_TITLES

_STYLE = """
:root{color-scheme:light dark;--states:#3b82c4;--gathered:#7aaede;--models:#8b6fc0;--batch:#d9822b;--engine:#2f9e77;
--rest:#8a8f98;--bad:#d64545}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.3}code,pre{font:13px/1.45 ui-monospace,monospace}pre{overflow-x:auto;padding:.8rem;
border:1px solid #8886;border-radius:6px}.bar{position:relative;display:flex;height:1.3rem;background:#8882}
.bar i{flex:none;overflow:hidden;font:12px/1.3rem sans-serif;color:#fff;text-align:center;font-style:normal}
.bar b{position:absolute;top:-2px;bottom:-2px;border-left:2px solid}table{border-collapse:collapse}
td,th{padding:.15rem .6rem;text-align:left;border-bottom:1px solid #8883}
.bars{width:100%}.bars td:nth-child(3){width:55%}
.states{background:var(--states)}.gathered{background:var(--gathered)}.models{background:var(--models)}
.batch{background:var(--batch)}.engine{background:var(--engine)}.rest{background:var(--rest)}
.unexplained{background:repeating-linear-gradient(45deg,var(--bad) 0 4px,#0000 4px 8px)}
.fits,.passed{color:#2f9e77}.over,.engine-start{color:var(--bad)}.tight,.unsure{color:#b7791f}
.add{color:#2f9e77}.del{color:var(--bad)}summary{cursor:pointer;font-weight:600}
"""
_LETTER_FROM = 0.04
"""Of the bar's width: what is narrower has no letter, only its title."""


def page_report(state: State, diff: str) -> str:
    """The page, without names of people, hosts and homes; secrets are taken out as in every report. `diff`: what the
    selected steps change in the launch script; "" where nothing is written."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")  # tags are text, and nothing becomes a link
    head, changes, rest = (str(reader.render(shareable(part))) for part in markdown_parts(state))
    title = escape(shareable(phrases.verdict(state)))
    body = [
        head,
        *(_bars(place, state.ledger, state.plan) for place in ("gpu", "host")),
        changes,
        _diff(diff),
        f"<details><summary>{escape(say('The whole report'))}</summary>\n{rest}</details>" if rest else "",
    ]
    return (
        f'<!doctype html>\n<html lang="{escape(spoken())}">\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n<body>\n"
        + "\n".join(filter(None, body))
        + "\n</body>\n</html>\n"
    )


# --- bars ----------------------------------------------------------------------------------------------------------


def _bars(place: Place, now: Ledger, plan: Plan) -> str:
    """A table of a place's phases, each as it is and as it would be; "" where nothing is counted."""
    phases = now.sums(place)
    after = plan.after if plan.after is not None and plan.selected() else None
    if not phases:
        return ""
    columns = [(say("now"), now), *([(say("after"), after)] if after is not None else [])]
    rooms = [capacity_of(ledger, place) for _, ledger in columns]
    sums = [of.expected for _, ledger in columns for of in ledger.sums(place)]
    scale = max([*sums, *(room for room in rooms if room is not None)], default=0) * 1.02
    if not scale:
        return ""
    rows = []
    for each in phases:
        for (word, ledger), room in zip(columns, rooms, strict=True):
            of = ledger.phase(place, each.phase)
            name = PHASE_TITLES[each.phase] if ledger is now else ""
            if of is not None:
                rows.append(_row(name, word, of, room, scale, plan))
    titles = {"gpu": say("GPU memory of one card, GiB"), "host": say("Host RAM of one node, GiB")}
    table = "\n".join(rows)
    owners = dict.fromkeys(cell.owner for of in phases for cell in of.cells if cell.expected > 0)
    legend = "<p>" + " · ".join(f"{OWNERS[one].letter} {escape(TITLES[one])}" for one in owners) + "</p>"
    return f'<h2>{escape(titles[place])}</h2>\n<table class="bars">\n{table}\n</table>\n{legend}'


def _row(name: str, word: str, of: PhaseSum, room: int | None, scale: float, plan: Plan) -> str:
    parts = []
    for owner, cells in groupby(of.cells, key=lambda cell: cell.owner):
        size = sum(max(cell.expected, 0) for cell in cells)
        kind = owner if owner == "unexplained" else OWNERS[owner].group
        letter = OWNERS[owner].letter if size > scale * _LETTER_FROM else ""
        told = escape(f"{TITLES[owner]} {show_gib(size)}", quote=True)
        parts.append(f'<i class="{kind}" style="width:{100 * size / scale:.2f}%" title="{told}">{letter}</i>')
    limit = f'<b style="left:{100 * room / scale:.2f}%"></b>' if room is not None else ""
    verdict = room_of(of, room, plan.fit_at(of, room), plan.margin)
    figures = say("{used} of {size}", used=show_gib(of.expected), size=phrases.size_words(room))
    word_class = "engine-start" if verdict == "engine" else verdict or ""
    says = f'<span class="{word_class}">{escape(ROOM_WORDS[verdict])}</span>' if verdict is not None else ""
    return (
        f'<tr><td>{escape(name)}</td><td>{escape(word)}</td><td><div class="bar">{"".join(parts)}{limit}</div></td>'
        f"<td>{escape(figures)}</td><td>{says}</td></tr>"
    )


# --- the diff ------------------------------------------------------------------------------------------------------


def _diff(diff: str) -> str:
    if not diff:
        return ""
    kinds = {"+": "add", "-": "del"}
    shown = "\n".join(
        f'<span class="{kinds[one[0]]}">{escape(one)}</span>' if one[:1] in kinds else escape(one)
        for one in shareable(redact(diff)).splitlines()
    )
    return f"<h2>{escape(say('The change in the file'))}</h2>\n<pre>{shown}</pre>"
