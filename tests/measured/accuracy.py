"""docs/accuracy.md: `python -m tests.measured.accuracy` prints it, `--write` writes it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import yaml

from tests.gpu.table import Row as MeasuredRow
from tests.gpu.table import read
from tests.gpu.trainers import compare as trainers
from tests.measured import own_files, peers
from tests.measured.published import Row, Sized, ledger_of, rows, size
from tests.plain_yaml import plain_yaml

__all__ = ["FILE", "UNCLAIMED", "ledger_of", "text"]

FILE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"
UNCLAIMED = Path(__file__).with_name("unclaimed.yaml")
REAL = Path(__file__).resolve().parents[1] / "real_parsers"
MEASURED = Path(__file__).resolve().parents[2] / "knowledge" / "measured.yaml"
ON_GPU = Path(__file__).resolve().parents[1] / "gpu" / "h200.yaml"
KINDS = {"dense": "Dense, one GPU, DDP, ZeRO and FSDP", "megatron": "Dense, Megatron", "moe": "Mixtures of experts"}

HEAD = """\
# How near the ledger is

Written by `python -m tests.measured.accuracy --write` from tests/measured/published.yaml and unclaimed.yaml; a test
holds this file to the ledger. Sizes are GiB on the fullest GPU. A reading "lies in" where it is between low and high.

## Peaks that others published, and that are claimed
"""
CARDS = """
## Sizes of cards

These sources write the size of the card, not a reading: "GPU memory: 80GiB", "8 * 80GiB", "16 * 80GiB". No card shows
that much: one of "80 GB" has 79.1 to 79.3 GiB, so that 80 cannot have been read. They say that such cards were used (or
were full, which torch's allocator makes them where nothing asks it not to: it keeps what it was given until a request
fails). What a run needs is not settled by them either way, and they count in no figure above.
"""
OWN_HEAD = """
## The same rows, from upstream's own files

`MIRRORS=FOLDER python -m tests.measured.own_files`: each file at the commit that the row names, given to `estimate` as
it stands, less its header; what the header says that a row differs by stands behind the command. The files say more
than the rows above do: data sets whose lengths are published, evaluation, versions.
"""
UNCLAIMED_HEAD = """
## Peaks that were looked at and are not claimed

A run of one of these kinds says in its ledger what it rests on ("Assumed"), and that it is an estimate: a trainer
without a dialect, a quantised base, rows of data whose lengths nobody gave, a low-rank optimizer.
"""
BLIND = """
## How blind this is

- With their readings known, but with no constant set or changed for them: 35, 35n, 37, 38, 40, 40b, 40c. For 38 and the
  40s a mechanism was added (tensor parallelism beside FSDP; an optimizer that steps in backward), no number.
- Set with readings in view: Megatron's allowances, the filling of rows that are not packed, what shorter passes leave
  in torch's segments, the widest and narrowest intervals, and the part of DDP's broadcast that is alive at once (0.85).
  Each stands in advisor/memory/constants.py with its unit, its reason and its source.
- Rows 2, 3, 5 and 9 are met at the lengths that the ledger takes where nobody says any, not at those of their data.
- ms-swift's readings do not say by which tool they were taken. If it was torch's own count of reserved memory, they
  leave out a CUDA context (0.5 GiB) and communicators (0.5 GiB), which the ledger counts.
"""
PARSERS = """
## Plans, and what the frameworks' own parsers say of them

`python -m tests.real_parsers`: every plan and every step alone, written into upstream's own examples and handed to the
framework's parser as far as it loads without a GPU. Accepted: it parses, and exactly the planned keys differ.

| framework | at | scripts | plans and steps | accepted | refused | other | judged by | without |
| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |
"""
EXAMPLES = """
## Upstream's examples, read

`python -m tests.real_parsers.examples`: `settings`, `estimate` and `diagnose` of a made-up crash on each example;
framework, method and trainer beside what upstream's own words say (tests/real_parsers/labels.py). Kept in
tests/real_parsers/examples_read.yaml; where a release has a package and no tag, the checkout says what it is made of.

| framework | checkout | examples | framework | method | backend | commands that failed | keys not understood | wrong |
| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |
"""
OWN = """
## Measured by us

knowledge/measured.yaml: {count} readings of small random-weight models ({meter}).
Median error: {errors}.
The same on a GPU ({card}, tests/gpu/h200.yaml): {on_gpu} readings, median error {gpu_error:.1%}, {inside} in the
interval.
"""
OURS = "TRL's trainers, measured by us on one {card}"
TRAINERS = """
## On a GPU, by us

### {title}

{count} rows: mean absolute error {mean:.1%}, worst {worst:.1%}; {inside} readings lie in.

`python -m tests.gpu.trainers`: scripts as people write them ({trainers} of tests/gpu/trainers/runs.yaml; random weights
of public models' shapes), run by TRL {trl}; `estimate` is given the script, the versions and the longest row. GiB that
torch allocated, without driver and allocator.

{table}
"""
PEERS = """
## Beside other estimators

`python -m tests.measured.peers`, on the dense rows that are claimed. The others count states, or states and activations
of one usual kind; none has logits copies, buckets, temporaries or what the allocator loses. A dash: no answer.
"""


def main() -> None:
    """Print the file, or write it."""
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(text())
    else:
        print(text(), end="")


def text() -> str:
    """The whole file."""
    sized = [(row, size(row.run)) for row in rows()]
    cards = [pair for pair in sized if pair[0].doubt == peers.WHOLE_CARD]
    parts = [HEAD]
    for kind, title in KINDS.items():
        claimed = [(r, f) for r, f in sized if r.kind == kind and r.doubt != peers.WHOLE_CARD]
        parts.append(f"\n### {title}\n\n{_summary(claimed)}\n\n{_table(claimed)}\n")
    parts += [OWN_HEAD, "\n", _own_files([pair for pair in sized if pair not in cards]), "\n"]
    parts += [
        CARDS,
        "\n",
        _table(cards),
        "\n",
        UNCLAIMED_HEAD,
        "\n",
        _unclaimed(),
        "\n",
        BLIND,
        _own(),
        _trainers(),
        PEERS,
        "\n",
    ]
    return "".join([*parts, "\n".join(peers.table()), "\n", PARSERS, _parsers(), EXAMPLES, _examples()])


def _summary(pairs: list[tuple[Row, Sized]]) -> str:
    errors = [abs(found.expected / row.reading - 1) for row, found in pairs]
    inside = sum(found.low <= row.reading <= found.high for row, found in pairs)
    mean = sum(errors) / len(errors)
    return f"{len(pairs)} rows: mean absolute error {mean:.1%}, worst {max(errors):.1%}; {inside} readings lie in."


def _table(pairs: list[tuple[Row, Sized]]) -> str:
    lines = ["| # | run | read | low | expected | high | error | | note |", "| --- |" + " --- |" * 8]
    for row, found in pairs:
        held = "in" if found.low <= row.reading <= found.high else "out"
        numbers = f"{row.reading:g} | {found.low:.1f} | {found.expected:.1f} | {found.high:.1f}"
        error = f"{found.expected / row.reading - 1:+.1%}"
        lines.append(f"| {row.id} | {row.what} | {numbers} | {error} | {held} | {row.doubt} |")
    return "\n".join(lines)


def _own_files(pairs: list[tuple[Row, Sized]]) -> str:
    found = {own.id: own for own in own_files.recorded()}
    told = [(row, found[row.id]) for row, _ in pairs if row.id in found]
    errors = [abs(own.expected / row.reading - 1) for row, own in told]
    inside = sum(own.low <= row.reading <= own.high for row, own in told)
    lines = [
        f"{len(told)} rows: mean absolute error {sum(errors) / len(errors):.1%}, median {median(errors):.1%}; {inside} "
        "readings lie in.",
        "",
        "| # | run | read | low | expected | high | error | | in |",
        "| --- |" + " --- |" * 8,
    ]
    for row, own in told:
        held = "in" if own.low <= row.reading <= own.high else "out"
        numbers = f"{row.reading:g} | {own.low} | {own.expected} | {own.high} | {own.expected / row.reading - 1:+.1%}"
        lines.append(f"| {row.id} | {row.what} | {numbers} | {held} | {own.phase.replace('_', ' ')} |")
    return "\n".join(lines)


def _unclaimed() -> str:
    lines = ["| run | read | low | expected | high | source, and why not |", "| --- |" + " --- |" * 5]
    for row in yaml.safe_load(UNCLAIMED.read_text()):
        lines.append(f"| {row['what']} | {row['reading']} | {_asked(row)} | {row['why']} ({row['source']}) |")
    return "\n".join(lines)


def _asked(row: dict[str, Any]) -> str:
    if "run" not in row:
        return "– | – | –"
    found = size(row["run"])
    return f"{found.low:.1f} | {found.expected:.1f} | {found.high:.1f}"


def _parsers() -> str:
    about, lines = yaml.safe_load((REAL / "upstream.yaml").read_text()), []
    for name, of_tag in yaml.safe_load((REAL / "results.yaml").read_text()).items():
        for tag, counts in of_tag.items():
            told = {
                what: sum(n for key, n in counts.items() if key.startswith(f"{what} "))
                for what in ("accepted", "refused", "other")
            }
            tried = f"{counts['plans']} + {counts['steps']}"
            numbers = f"{counts['scripts']} | {tried} | {told['accepted']} | {told['refused']} | {told['other']}"
            says = f"{about[name]['judged_by']} | {about[name]['without']}"
            lines.append(f"| {name} | {tag}, {counts['date']} | {numbers} | {says} |\n")
    return "".join(lines)


def _examples() -> str:
    lines, about = [], yaml.safe_load((REAL / "examples.yaml").read_text())
    for tree, counts in yaml.safe_load((REAL / "examples_read.yaml").read_text()).items():
        wrong, unknown = (", ".join(counts[what]) or "none" for what in ("wrong", "not_understood"))
        name, (_, _, revision) = counts["framework"], tree.rpartition("@")
        composed = about[name].get("composed", {}).get(revision, "")
        shown = f"{tree} ({composed})" if composed else tree
        rights = " | ".join(str(counts[f"{what} right"]) for what in ("framework", "method", "backend"))
        numbers = f"{counts['examples']} | {rights} | {counts['failed']}"
        lines.append(f"| {name} | {shown} | {numbers} | {unknown} | {wrong} |\n")
    return "".join(lines)


def _own() -> str:
    head, measured = read(MEASURED)
    errors = ", ".join(f"{name.replace('_', ' ')} {error:.2%}" for name, error in head["median_error"].items())
    gpu = on_gpu()
    return OWN.format(
        count=len(measured),
        meter=head["meter"],
        errors=errors,
        card=plain_yaml(ON_GPU)["card"],
        on_gpu=len(gpu),
        gpu_error=median(abs(row.error) for row in gpu),
        inside=sum(row.low <= row.measured <= row.high for row in gpu),
    )


def on_gpu() -> list[MeasuredRow]:
    """What a GPU read of knowledge/measured.yaml's configurations, beside the predictions that stand there."""
    told = {(row.configuration, row.phase): row for row in read(MEASURED)[1]}
    rows = plain_yaml(ON_GPU)["rows"]
    return [replace(told[name, phase], measured=held) for name, phase, held in rows if (name, phase) in told]


def _trainers() -> str:
    rows = trainers.compared()
    return TRAINERS.format(
        trainers=len({row.configuration for row in rows}),
        title=OURS.format(card=trainers.measured()["card"]),
        trl=trainers.measured()["libraries"]["trl"],
        mean=fmean(abs(row.error) for row in rows),
        worst=max(abs(row.error) for row in rows),
        inside=sum(row.low <= row.measured <= row.high for row in rows),
        count=len(rows),
        table="\n".join(trainers.table()),
    )


if __name__ == "__main__":
    main()
