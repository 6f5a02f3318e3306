"""A release that nobody read, a repository that moved or stopped: told from a repository and an index on this disk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from packaging.version import Version

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework, NewestRead
from tests.knowledge import newest_upstream, upstream_examples
from tests.knowledge.every_version import report_every
from tests.knowledge.newest_upstream import Newest, newest_of, newest_tag, not_read, report_newest
from tests.knowledge.upstream import Mirror, Packages, Source, Upstream, parser_keys, tree_keys
from tests.loops import each

(OPENRLHF,) = (one for one in load_knowledge().frameworks if one.framework == "openrlhf")
PARSER = 'parser.add_argument("--train.micro_batch_size", type=int, default={default})\n{more}'
NEW_KEY = 'parser.add_argument("--train.logits_chunk_size", type=int, default=0)\nparser.add_argument("--logger.hue")\n'
EXAMPLE = "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path Qwen/Qwen2.5-7B --train.micro_batchsize 4\n"


def read_up_to(version: str) -> Framework:
    return replace(OPENRLHF, newest_read=NewestRead("2026-09-14", version))


class NoIndex:
    def texts(self, tag: str, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
        return iter(())


def where(tag: str, *free: str) -> Upstream:
    eras = {"v0.10.2": Source(tag, ("cli.py",), free=free)}
    return Upstream("OpenRLHF/OpenRLHF", "", True, eras, ("examples/*.sh",))


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    """A repository with the tags v0.11.0 and v0.12.0, which has a key and another default more."""
    work = tmp_path / "work"
    (work / "examples").mkdir(parents=True)
    kept = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=work, check=True, capture_output=True, env=kept)

    git("init", "--quiet")
    (work / "examples" / "run.sh").write_text(EXAMPLE)
    for tag, default, more in (("v0.11.0", 1, ""), ("v0.12.0", 8, NEW_KEY)):
        (work / "cli.py").write_text(PARSER.format(default=default, more=more))
        git("add", "-A")
        git("commit", "--quiet", "-m", tag)
        git("tag", tag)
    bare = tmp_path / "mirrors" / "OpenRLHF+OpenRLHF" / "repo"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(work), str(bare)], check=True, capture_output=True)
    return tmp_path / "mirrors"


Reported = Callable[..., tuple[int, str]]


@pytest.fixture
def reported(mirrors: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reported:
    def report(version: str, free: str = "*") -> tuple[int, str]:
        monkeypatch.setattr(newest_upstream, "upstream_of", lambda _: where("v0.11.0", free))
        code = report_newest([read_up_to(version)], NoIndex(), str(mirrors))
        return code, capsys.readouterr().out

    return report


def test_it_is_green_where_all_was_read_and_red_where_newest_read_is_set_back(reported: Reported) -> None:
    assert reported("0.12.0")[0] == 0
    code, said = reported("0.11.0")
    assert code == 1
    assert "tag 0.12.0 was not read (newest_read 0.11.0)" in said


def test_it_is_red_where_a_key_of_the_dialect_is_gone(reported: Reported) -> None:
    code, said = reported("0.12.0", free="actor.*")
    assert code == 1
    assert "gone rollout.n_samples_per_prompt" in said
    assert "gone train.micro_batch_size" not in said


def test_keys_that_speak_of_memory_and_defaults_that_moved_are_told(reported: Reported) -> None:
    _, said = reported("0.11.0")
    assert "new key train.logits_chunk_size" in said
    assert "logger.hue" not in said
    assert "default train.micro_batch_size: 1 when it was read, 8 now" in said


def test_examples_are_told_by_framework_and_trainer_with_the_keys_that_nobody_understood(reported: Reported) -> None:
    _, said = reported("0.12.0")
    assert "examples: 1 openrlhf ppo deepspeed" in said
    assert "not understood in 1 examples: --train.micro_batchsize" in said


def test_an_example_that_is_not_known_is_named(mirrors: Path) -> None:
    (other,) = (one for one in load_knowledge().frameworks if one.framework == "trl")
    mirror = Mirror(str(mirrors / "OpenRLHF+OpenRLHF" / "repo"))
    said = [*upstream_examples.tried_examples(other, mirror, "v0.12.0", ["examples/*.sh"])]
    assert "example examples/run.sh is openrlhf here" in said


@each(
    ("there", "said"),
    [
        (Newest(Version("0.11.2"), "v0.11.2"), ""),
        (Newest(Version("0.12.0"), "v0.12.0"), "package 0.12.0 was not read"),
        (Newest(Version("0.11.2"), "v0.9.0"), "ahead of the newest tag v0.9.0"),
        (Newest(Version("0.11.2"), "v0.9.0", copied="2026-08-13"), ""),
        (Newest(Version("0.11.2"), "v0.9.0", copied="2026-09-14"), "ahead of the newest tag v0.9.0"),
        (Newest(None, "v0.11.2", "OpenRLHF/OpenRLHF"), ""),
        (Newest(None, "v0.11.2", "openrlhf-project/OpenRLHF"), "is openrlhf-project/OpenRLHF now"),
        (Newest(), ""),
    ],
)
def test_what_is_beyond_the_reading_is_told(there: Newest, said: str) -> None:
    told = [*not_read(read_up_to("0.11.2"), where("v0.11.0"), there)]
    assert any(said in problem for problem in told) if said else not told


def test_every_release_of_an_era_is_compared(mirrors: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A default of the newest alone, a key that a release lacks, and one that is said to have come later."""
    mirror = Mirror(str(mirrors / "OpenRLHF+OpenRLHF" / "repo"))
    share = OPENRLHF.settings["vllm.gpu_memory_utilization"]
    kept = {"train.micro_batch_size": OPENRLHF.settings["train.micro_batch_size"], "vllm.a": share, "vllm.b": share}
    kept["vllm.b"] = replace(share, since="0.13.0")
    assert report_every(replace(OPENRLHF, settings=kept), where("v0.12.0"), mirror, Packages()) == 1
    said = capsys.readouterr().out
    assert "default train.micro_batch_size: 1 here, 8 upstream at v0.12.0\n" in said
    assert "missing vllm.a at all" in said
    assert "vllm.b" not in said


def test_git_says_where_a_repository_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(command: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        moved = "warning: redirecting to https://github.com/verl-project/verl/\n"
        return subprocess.CompletedProcess(command, 0, "1 refs/tags/v0.9.0\n2 refs/tags/v0.10.0rc1\n", moved)

    monkeypatch.setattr(subprocess, "run", asked)
    assert newest_of(where("v0.11.0"), None) == Newest(None, "v0.9.0", "verl-project/verl")


def test_the_newest_tag_is_the_newest_release() -> None:
    assert newest_tag(["v0.9.0", "v0.10.0", "v0.11.0rc1", "nightly", "v0.2"]) == "v0.10.0"
    assert newest_tag([]) == ""


def test_options_that_a_loop_writes_are_patterns() -> None:
    text = 'for role in ("actor", "critic"):\n    parser.add_argument(f"--{role}.adam.lr", default=1e-6)\n'
    assert parser_keys({"cli.py": text}) == {"*.adam.lr": 1e-6}


def test_a_class_is_the_one_that_the_file_means() -> None:
    """Two files have a class of one name, an alias unites two, and the default says which of them counts."""
    files = {
        "x/trainer.py": "class Model:\n    dtype: str = 'fp32'\nclass Adam:\n    type: str = 'adam'\n"
        "class Sgd:\n    type: str = 'sgd'\n    momentum: float = 0.9\nOptim: TypeAlias = Sgd | Adam\n"
        "class Trainer:\n    model: Model\n    optim: Optim = Adam()\n",
        "x/engine.py": "class Model:\n    length: int = 4096\nclass Engine:\n    model: Model\n",
        "x/rl.py": "from x.engine import Engine as Server\nfrom x.trainer import Trainer\n"
        "class Run:\n    trainer: Trainer\n    engine: Server\n",
    }
    found = tree_keys(files, ["Run"])
    assert (found["trainer.model.dtype"], found["engine.model.length"]) == ("fp32", 4096)
    assert "engine.model.dtype" not in found
    assert (found["trainer.optim.type"], found["trainer.optim.momentum"]) == ("adam", 0.9)
