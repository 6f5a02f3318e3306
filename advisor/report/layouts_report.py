"""Writes how many cards a run needs of which there is no script: the layouts tried, the changes, and the script."""

from __future__ import annotations

from typing import Any

from advisor.language import clauses, listed, say, say_count
from advisor.layouts import Layout, Layouts, suffices
from advisor.memory.fit import worst_of_each_place
from advisor.memory.fit_clause import finding_clause
from advisor.report import phrases
from advisor.report.json_report import SCHEMA, estimate_json, step_json
from advisor.report.layout import join, section, table, wrap, wrap_each
from advisor.report.memory_section import memory_section
from advisor.run_file import sizing_of
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES

_NUMBERS = frozenset({1})
MOST_CHANGES = 6
"""Changes told one by one; each is in the script below."""


def layouts_report(found: Layouts) -> str:
    """The answer in a sentence, every layout tried, what changes on the smallest, its memory and its script."""
    smallest = found.smallest
    shown = smallest or found.tried[-1]
    trial = sizing_of(shown.state).trial
    titles = [say("GPUs"), say("fullest, GiB"), say("as it stands"), say("with changes that keep results")]
    told = {"start": shown.state.run.title, "version": found.start.version, "source": found.start.source}
    script = [
        line
        for name, text in shown.files.items()
        for line in ("", f"# {name}, {told['start']} {told['version']}", *text.rstrip("\n").split("\n"))
    ]
    return join(
        [
            *wrap(headline(found)),
            *wrap(say("Counted for the starting script that {start} {version} documents: {source}.", **told)),
            *wrap(phrases.subject(shown.state.run), 2, 4),
            *section(say("Layouts tried"), table([titles, *(_row(one) for one in found.tried)], right=_NUMBERS)),
            *section(say("Changes on {cards}", cards=_cards(shown, found.card)), _changes(shown)),
            *memory_section(shown.state),
            *_host(shown),
            *section(say("To see the worst batch first"), wrap(trial.sentence, 2) if trial is not None else []),
            *section(say("The script, with these changes") if shown.changes else say("The script"), script[1:]),
        ]
    )


def headline(found: Layouts) -> str:
    """The fewest cards, and the fewest for the script as it stands."""
    model, smallest, plain = found.tried[0].state.run.model_name, found.smallest, found.smallest_as_written
    if smallest is None:
        most = _cards(found.tried[-1], found.card)
        return say("{model} does not fit {cards} with this method, nor with fewer.", model=model, cards=most)
    if smallest is plain:
        return say(
            "{model} fits {cards} with this script as it stands.", model=model, cards=_cards(smallest, found.card)
        )
    with_changes = say_count(
        "{model} fits {cards} with {number} change of this script that leaves training results alone",
        "{model} fits {cards} with {number} changes of this script that leave training results alone",
        len(smallest.changes),
        model=model,
        cards=_cards(smallest, found.card),
    )
    if plain is None:
        return say("{told}.", told=with_changes)
    return say("{told}; as it stands it needs {cards}.", told=with_changes, cards=_cards(plain, found.card))


def _cards(layout: Layout, card: str) -> str:
    """Like "16 × H100-80GB (2 nodes)"."""
    of = f"{layout.gpus} × {card}"
    return say("{cards} ({nodes} nodes)", cards=of, nodes=layout.nodes) if layout.nodes > 1 else of


def _row(layout: Layout) -> list[str]:
    crowded = layout.state.ledger.crowded("gpu")
    full = "?" if crowded is None else f"{crowded.expected / 2**30:.1f}"
    where = "" if crowded is None else PHASE_TITLES[crowded.phase]
    count = str(layout.gpus) if layout.nodes == 1 else f"{layout.nodes} × {layout.gpus_per_node}"
    if suffices(layout.as_written):
        return [count, full, say("fits"), ""]
    if layout.fits:
        return [count, full, where, listed(step.id for step in layout.changes)]
    near = any(fit.doubted and fit.verdict != "does_not_fit" for fit in (layout.as_written, layout.state.plan.fit))
    return [count, full, where, say("may fit, not certain") if near else say("does not fit")]


def _changes(layout: Layout) -> list[str]:
    lines: list[str] = []
    for step in layout.changes[:MOST_CHANGES]:
        lines += wrap(say("{step} ({facts})", step=step.title, facts=phrases.saves_word(step) or step.id), 2, 4)
        lines += wrap_each((phrases.change_line(change) for change in step.changes), 4, 6)
    if not layout.fits:
        worst = worst_of_each_place(layout.state.plan.fit)
        lines += wrap(say("It still does not fit: {why}.", why=clauses(map(finding_clause, worst))), 2, 4)
    return lines


def _host(layout: Layout) -> list[str]:
    """The RAM that each node needs, with the changes."""
    ledger = layout.state.plan.after if layout.changes and layout.state.plan.after is not None else layout.state.ledger
    crowded = ledger.crowded("host")
    if crowded is None:
        return []
    told = {"size": show_bytes(crowded.expected), "phase": PHASE_TITLES[crowded.phase]}
    return ["", *wrap(say("Host RAM of each node: {size}, in {phase}.", **told))]


def layouts_json(found: Layouts) -> dict[str, Any]:
    """`estimate --framework … --format json`: the smallest layout, its script, and all that was tried."""
    shown = found.smallest or found.tried[-1]
    start = found.start
    return {
        **estimate_json(sizing_of(shown.state)),
        "schema": SCHEMA,
        "start": {"id": start.id, "version": start.version, "source": start.source, "files": dict(shown.files)},
        "layouts": [
            {
                "nodes": one.nodes,
                "gpus_per_node": one.gpus_per_node,
                "fits": one.fits,
                "fits_as_written": suffices(one.as_written),
                "changes": [step_json(step) for step in one.changes],
            }
            for one in found.tried
        ],
    }
