"""While a run lives its record is looked at: peaks that rose, and once what would be full first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.commands.watched_run import LiveEvents
from advisor.watch.events import Notifier
from advisor.watch.record_files import LONGEST, SAMPLES
from tests.watch.made_record import made_record
from tests.watch.sent_events import EVENT, sent_events


def events(folder: Path, leak: float, steps: tuple[int, ...] = (24, 30)) -> tuple[list[dict[str, object]], list[str]]:
    """What is sent and said when the record is looked at after so many steps."""
    told, said = folder / "told", list[str]()
    notifier = Notifier(f"tee -a '{told}'")
    notifier.attempt = 2
    live = LiveEvents(notifier, said.append)
    for count in steps:
        live.look(made_record(folder / f"record-{count}", steps=count, leak=leak, ends=False))
        notifier.finish()
    return sent_events(told), said


def test_what_grows_is_foreseen_once_and_said(tmp_path: Path) -> None:
    sent, said = events(tmp_path, leak=2.5)
    foreseen = [one for one in sent if one["event"] == "forecast"]
    assert len(foreseen) == len(said) == 1
    assert foreseen[0]["attempt"] == 2
    assert foreseen[0]["gauge"] == "host RAM"
    soon, late = foreseen[0]["steps_left"]  # type: ignore[misc]
    assert 60 < soon < (512 - 260 - 24 * 2.5) / 2.5 < late
    assert "host RAM is full first in the actor update" in said[0]


def test_a_run_that_grows_nowhere_is_told_by_its_peaks_alone(tmp_path: Path) -> None:
    sent, said = events(tmp_path, leak=0.0)
    assert not said
    assert {one["event"] for one in sent} == {"phase_peak"}
    first = sent[0]["peaks"]
    assert isinstance(first, list)
    assert {(peak["place"], peak["phase"]) for peak in first} >= {("gpu", "actor_update"), ("host", "rollout_generate")}
    assert len(sent) == 1 or len(sent[1]["peaks"]) < len(first)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [None, "", "no record"])
def test_a_record_that_cannot_be_read_costs_the_events_only(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "samples.jsonl").write_text(text)
    LiveEvents(Notifier(None), print).look(tmp_path)


def answers(folder: Path, lengths: list[float], cap: int | None) -> tuple[list[dict[str, object]], list[str]]:
    """What is sent and said of a run whose longest answers have these lengths, step by step."""
    record = made_record(folder / "record", steps=len(lengths), leak=0.0, ends=False)
    lines = (record / SAMPLES).read_text().splitlines()
    steps = iter(enumerate(lengths))
    with (record / SAMPLES).open("w") as file:
        for line in lines:
            mark = json.loads(line)
            if isinstance(mark, dict) and mark.get("counter") == "step":
                file.write(json.dumps({"t": mark["t"], "counter": LONGEST, "count": next(steps)[1]}) + "\n")
            file.write(line + "\n")
    said, told = list[str](), folder / "told"
    notifier = Notifier(f"tee -a '{told}'")
    live = LiveEvents(notifier, said.append, lambda: cap)
    live.look(record)
    live.look(record)
    notifier.finish()
    return sent_events(told), said


def test_answers_that_grow_toward_their_cap_are_foreseen_once(tmp_path: Path) -> None:
    sent, said = answers(tmp_path, [600.0 + 40 * step + step % 3 for step in range(24)], 2048)
    (grown,) = [one for one in sent if one["event"] == "longer_answers"]
    assert grown["cap"] == 2048
    soon, late = grown["steps_left"]  # type: ignore[misc]
    assert soon <= (2048 - 600 - 40 * 24) / 40 + 1 <= late + 2
    (sentence,) = said
    assert sentence.startswith("The longest answers grow: ")
    assert "of 2048 tokens" in sentence


@pytest.mark.parametrize(
    ("lengths", "cap"),
    [([600.0 + step % 5 for step in range(24)], 2048), ([600.0 + 40 * step for step in range(24)], None)],
    ids=["they stay", "no cap is known"],
)
def test_of_answers_that_stay_or_have_no_cap_nothing_is_said(tmp_path: Path, lengths: list[float], cap: int) -> None:
    sent, said = answers(tmp_path, lengths, cap)
    assert {one["event"] for one in sent} == {"phase_peak"}
    assert not said


def test_the_page_names_every_event_of_the_contract_with_what_it_has() -> None:
    forms = EVENT.schema["$defs"]["event"]["oneOf"]
    wanted = {form["properties"]["event"]["const"]: {*form["required"]} for form in forms}
    page = (Path(__file__).parents[2] / "docs" / "retry.md").read_text("utf-8")
    rows = [line.split("|") for line in page.partition("## Events")[2].partition("\n\nThe record")[0].splitlines()]
    named = {word: row[2] for row in rows if len(row) > 3 for word in row[1].replace("`", "").replace(",", "").split()}
    assert wanted.keys() <= named.keys()
    missing = [(event, has) for event, fields in wanted.items() for has in fields if f"`{has}`" not in named[event]]
    assert not missing
