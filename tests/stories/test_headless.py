"""Each documented crash from script and log to a patched script, by the commands alone."""

from __future__ import annotations

import difflib
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.exits import Exit
from tests.heavy import sampled
from tests.stories.page import page
from tests.stories.told import DOCUMENTED, RUNS, STORIES, beginning, changes, diagnosis, enter, stable, tell

REPORTS = ("easyr1", "logic-rl-stage1")
"""Stories whose written report is kept as a golden, as far as a person reads it."""
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def golden(name: str, folder: str, text: str) -> None:
    file = RUNS / folder / f"expected.{name}"
    if UPDATE:
        file.write_text(text)
    assert file.read_text() == text, "".join(
        difflib.unified_diff(file.read_text().splitlines(True), text.splitlines(True), "expected", "told", n=1)
    )[:4000]


@pytest.mark.parametrize("name", STORIES)
def test_the_story_reads_as_on_its_page(name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    story = STORIES[name]
    folder = enter(story, tmp_path, monkeypatch)
    tell(story.words("fix"), capsys)
    scripts = [script for script in (story.script, story.fits) if (folder / script).exists()]
    codes = {script: tell(["estimate", script, "--log", story.log, *story.machine], capsys)[0] for script in scripts}
    golden(f"{name}.page.txt", story.folder, page(diagnosis(story, capsys), codes))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_patched_script_and_its_report_are_the_expected_ones(
    name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES[name]
    folder = enter(story, tmp_path, monkeypatch)
    before = {f: f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    code, _, err = tell(story.words("fix"), capsys)
    if name == "openrlhf":  # another library version is no edit of the script
        assert (code, (folder / story.fits).exists()) == (3, False), err
        assert 'pip install "deepspeed>=0.16.8"' in err
        return
    assert code == 0, err
    assert all(f.read_bytes() == data for f, data in before.items()), "a file of the user's was changed"
    patched = folder / story.fits
    assert stat.S_IMODE(patched.stat().st_mode) == stat.S_IMODE((folder / story.script).stat().st_mode)
    golden(
        f"{name}.patch",
        story.folder,
        "".join(
            difflib.unified_diff(
                (folder / story.script).read_text().splitlines(True),
                patched.read_text().splitlines(True),
                story.script,
                story.fits,
            )
        ),
    )
    report = (folder / story.fits).with_suffix(".md").read_text()
    assert report.count("\n") > 20
    if name in REPORTS:
        golden(f"{name}.report.md", story.folder, beginning(stable(report)))
    if patched.suffix == ".sh":
        assert subprocess.run(["bash", "-n", str(patched)], check=False).returncode == 0


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_patched_script_reads_back_with_exactly_the_planned_values(
    name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES[name]
    folder = enter(story, tmp_path, monkeypatch)
    planned = changes(diagnosis(story, capsys), selected=True)
    tell(story.words("fix"), capsys)
    if name == "openrlhf":
        return

    def values(script: str) -> dict[str, object]:
        _, out, _ = tell(["settings", script, "--format", "json"], capsys)
        found = json.loads(out)["launches"][0]["settings"]
        return {s["key"].lstrip("-"): s["value"] for s in found if s["effective"]}

    old, new = values(story.script), values(story.fits)
    assert {key: new[key] for key in planned} == {key: value for key, (_, value) in planned.items()}
    assert {k: v for k, v in new.items() if k not in planned} == {k: v for k, v in old.items() if k not in planned}
    assert folder.name == story.folder


@pytest.mark.parametrize("name", sampled(DOCUMENTED, 1))
def test_nothing_is_overwritten_unasked(name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    story = STORIES[name]
    folder = enter(story, tmp_path, monkeypatch)
    (folder / story.fits).write_text("mine")
    code, _, err = tell(story.words("fix"), capsys)
    if name != "openrlhf":
        assert code == 2
        assert story.fits in err
    assert (folder / story.fits).read_text() == "mine"


# --- what each story must say --------------------------------------------------------------------------------------


def test_a_dash_sends_the_script_alone_to_standard_output(
    tmp_path: Path, monkeypatch: Patch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["fix", "--demo", "-o", "-"]) == Exit.DONE
    printed, told = capfdbinary.readouterr()
    monkeypatch.chdir(tmp_path)
    assert main(["fix", "--demo", "-o", "written.sh"]) == Exit.DONE
    assert printed == (tmp_path / "written.sh").read_bytes()
    assert b"offload_optimizer true \xe2\x86\x92 false" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["written.md", "written.sh"]


def test_logic_rl_explains_the_forks_algebra_and_offers_the_results_preserving_way_first(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES["logic-rl-stage1"]
    enter(story, tmp_path, monkeypatch)
    answer = diagnosis(story, capsys)
    remarks = " ".join(answer["diagnosis"]["remarks"])
    assert "8 prompts * 32 samples / 4 ranks = 64 sequences" in remarks
    assert "(64 // 4 data-parallel ranks) * 32 samples = 512" in remarks
    assert "not what binds" in remarks
    first = answer["plan"][0]
    assert first["selected"]
    assert first["results"] == "unchanged"
    planned = changes(answer)
    assert planned["actor_rollout_ref.actor.use_dynamic_bsz"][1] == "True"
    assert int(planned["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"][1]) >= 400 + 2048
    step = next(s for s in answer["plan"] if [c["key"] for c in s["changes"]] == ["data.train_batch_size"])
    assert (step["changes"][0]["old"], step["changes"][0]["new"], step["results"]) == ("8", "4", "changed")
    assert "actor_rollout_ref.actor.ppo_micro_batch_size" not in planned
    refused = next(n for n in answer["not_proposed"] if n["id"] == "lower-actor-micro-batch")
    assert "logic-rl-8" in refused["because"]


def test_logic_rl_stage_two_proposes_samples_between_32_and_48_and_cannot_lower_the_batch_further(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES["logic-rl-stage2"]
    enter(story, tmp_path, monkeypatch)
    answer = diagnosis(story, capsys)
    assert answer["crash"]["phase"] == "log_prob"
    assert 32 <= int(changes(answer)["actor_rollout_ref.rollout.n"][1]) <= 48
    assert "data.train_batch_size" not in changes(answer)
    refused = {n["id"]: n["because"] for n in answer["not_proposed"]}
    assert "multiple of the number of GPUs" in refused["lower-train-batch"]
    assert any("computes the old log-probabilities inside it" in r for r in answer["diagnosis"]["remarks"])


def test_open_reasoner_zero_edits_one_literal_of_the_dataclass_and_nothing_else(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES["open-reasoner-zero"]
    folder = enter(story, tmp_path, monkeypatch)
    answer = diagnosis(story, capsys)
    fields = answer["crash"]["evidence"][0]["fields"]
    assert fields["allocated_bytes"] == round(66.85 * 2**30)
    assert fields["free_bytes"] == round(278.19 * 2**20)
    assert changes(answer, selected=True) == {"gpu_memory_utilization": ("0.7", "0.5")}
    tell(story.words("fix"), capsys)
    old, new = ((folder / n).read_text().splitlines() for n in (story.script, story.fits))
    moved = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    assert len(moved) == 1
    assert moved[0][1].startswith(moved[0][0].replace("0.7 if", "0.5 if"))
    refused = {n["id"]: n["because"] for n in answer["not_proposed"]}
    assert "max_num_seqs" in refused["micro_rollout_batch_size"]
    assert "Pinned to 1" in refused["micro_train_batch_size"]
    assert "Pinned to 1" in refused["micro_forward_batch_size"]
    assert any(a["library"] == "deepspeed" and a["version"] == "0.16.3" for a in answer["diagnosis"]["advisories"])


def test_openrlhf_names_the_leak_says_why_more_nodes_do_not_help_and_offers_both_ways_out(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES["openrlhf"]
    enter(story, tmp_path, monkeypatch)
    answer = diagnosis(story, capsys)
    assert answer["diagnosis"]["cause"] == "library-regression"
    assert any("More nodes do not help" in r for r in answer["diagnosis"]["remarks"])
    offered = [c["new"] for s in answer["plan"] for c in s["changes"] if c["key"] == "deepspeed"]
    assert offered == [">=0.16.8", "0.15.0"]


@pytest.mark.parametrize("version", ["0.15.0", "0.16.9"])
def test_openrlhf_does_not_blame_a_deepspeed_without_the_leak(
    version: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES["openrlhf"]
    enter(story, tmp_path, monkeypatch)
    words = [w for w in story.machine if w not in ("--lib", "deepspeed=0.16.3")]
    _, out, _ = tell(
        ["diagnose", story.script, "--log", story.log, *words, "--lib", f"deepspeed={version}", "--format", "json"],
        capsys,
    )
    answer = json.loads(out)
    assert answer["diagnosis"]["cause"] != "library-regression"
    assert "library-regression" in {r["cause"] for r in answer["diagnosis"]["ruled_out"]}
    assert not [c for s in answer["plan"] for c in s["changes"] if c["key"] == "deepspeed"]


def test_easyr1_turns_offload_off_in_the_launch_checks_the_cards_and_does_not_claim_all_of_the_726_gb(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES["easyr1"]
    folder = enter(story, tmp_path, monkeypatch)
    config = (folder / "examples/config.yaml").read_bytes()
    answer = diagnosis(story, capsys)
    fields = answer["crash"]["evidence"][0]["fields"]
    assert (answer["crash"]["memory"], fields["threshold"]) == ("host", 0.95)
    assert fields["node_used_bytes"] == round(726.33 * 2**30)
    remarks = " ".join(answer["diagnosis"]["remarks"])
    assert "victim, not the cause" in remarks
    assert "0.87 of 726.33 GiB" in remarks
    assert "not explained by any setting" in remarks
    selected = changes(answer, selected=True)
    assert selected["worker.actor.offload.offload_params"] == ("true", "false")
    assert selected["worker.actor.offload.offload_optimizer"] == ("true", "false")
    assert 0.3 <= float(selected["worker.rollout.gpu_memory_utilization"][1]) < 0.6, (
        "the rollout would be the next to die"
    )
    cards = answer["after"]["gpu"]
    assert all(p["expected_bytes"] <= cards["capacity_bytes"] * 0.92 for p in cards["phases"])
    threshold = next(s for s in answer["plan"] if s["id"] == "ray-threshold")
    assert not threshold["selected"]
    assert "kernel" in threshold["why"]
    assert "lower-accumulation-host" in {n["id"] for n in answer["not_proposed"]}
    tell(story.words("fix"), capsys)
    assert (folder / "examples/config.yaml").read_bytes() == config
    assert "    worker.actor.offload.offload_params=false" in (folder / story.fits).read_text()


def test_ms_swift_keeps_the_divisibility_of_its_version_and_lists_accumulation_as_no_help(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES["ms-swift"]
    enter(story, tmp_path, monkeypatch)
    answer = diagnosis(story, capsys)
    planned = changes(answer)
    batch, samples = (int(planned[k][1]) for k in ("per_device_train_batch_size", "num_generations"))
    assert (batch, samples) in {(4, 4), (2, 2), (4, 6), (4, 3)}
    assert 3 * batch % samples == 0, "three training cards by the environment prefix"
    assert planned["vllm_gpu_memory_utilization"][1] == "0.5"
    assert "gradient_accumulation_steps" not in planned
    refused = {n["id"]: n["because"] for n in answer["not_proposed"]}
    assert "does not lower the peak" in refused["lower-accumulation"]
    assert next(s for s in answer["plan"] if s["id"] == "length-filter")["results"] == "changed"


def test_an_unknown_script_still_gets_evidence_machine_a_tree_and_set(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES["unknown"]
    folder = enter(story, tmp_path, monkeypatch)
    answer = diagnosis(story, capsys)
    assert answer["run"]["framework"] == "unknown"
    assert answer["crash"]["evidence"][0]["fields"]["tried_bytes"] == round(2.5 * 2**30)
    assert answer["diagnosis"]["path"]
    assert answer["plan"]
    told = [change for step in answer["plan"] for change in step["changes"]]
    assert [(one["key"], one["old"], one["new"]) for one in told] == [("--batch-size", "64", "32")]
    code, _, err = tell([*story.words("fix"), "--accept", "lower-actor-micro-batch"], capsys)
    assert code == 0, err
    assert "BATCH=32" in (folder / "train.fits.sh").read_text()


def test_an_estimate_seeks_no_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    story = STORIES["easyr1"]
    enter(story, tmp_path, monkeypatch)
    monkeypatch.setattr("advisor.state.make_plan", lambda *_: pytest.fail("a plan was made"))
    code, out, _ = tell(story.words("estimate"), capsys)
    assert code in (0, 3)
    assert "GiB" in out
