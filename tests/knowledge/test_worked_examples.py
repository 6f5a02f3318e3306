"""What the pages on adding knowledge tell somebody to write, works as it is written there."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from advisor.knowledge import load_knowledge, open_knowledge
from advisor.knowledge.schema import Era, SettingFact
from advisor.rules.expression import decode
from advisor.session import SessionRequest, open_session

DOCS = Path(__file__).resolve().parents[2] / "docs"
FILES = {
    "adding-a-framework.md": "frameworks/toyrl.yaml",
    "adding-a-crash-line.md": "signatures.yaml",
    "adding-a-case.md": "cases/toyrl-12.yaml",
}


def example(page: str) -> str:
    """The first YAML of a page."""
    found = re.search(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with the three examples; the framework's one deliberate mistake is mended, as its page goes on to do."""
    for page, name in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(example(page).replace("rollout.group_size", "rollout.samples_per_prompt"))
    return tmp_path


def test_the_three_examples_are_taken_together(own: Path) -> None:
    before, knowledge = load_knowledge(), open_knowledge([own])
    assert knowledge.refused == ()
    assert {one.framework for one in knowledge.frameworks} - {one.framework for one in before.frameworks} == {"toyrl"}
    assert {one.id for one in knowledge.cases} - {one.id for one in before.cases} == {"toyrl-12"}
    assert "toy-pool-full" in {one.id for one in knowledge.signatures.signatures}


def test_the_linter_says_of_the_first_file_what_the_page_shows(own: Path) -> None:
    page = (DOCS / "adding-a-framework.md").read_text(encoding="utf-8")
    (own / "frameworks" / "toyrl.yaml").write_text(example("adding-a-framework.md"))
    (refused,) = [one for one in open_knowledge([own]).refused if "toyrl.yaml" in one]
    assert refused.removeprefix(f"{own}/") in page.replace("mine/", "")


def test_the_example_framework_is_told_by_a_log_alone(own: Path) -> None:
    log = own / "train.log"
    log.write_text('  File "/x/toyrl/train.py", line 3, in main\ntorch.OutOfMemoryError: CUDA out of memory.\n')
    assert open_session(SessionRequest(None, (log,), knowledge=(own,))).run.framework == "toyrl"


def test_the_page_on_forks_is_short_and_its_lines_are_taken() -> None:
    page = (DOCS / "adding-a-fork.md").read_text(encoding="utf-8")
    era, setting = (yaml.safe_load(part) for part in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    assert msgspec.convert(era, list[Era])[0].fork_keys == ("toy.rollout.*",)
    assert msgspec.convert(setting, dict[str, SettingFact], dec_hook=decode)
    assert len(page.split()) <= 1200


def test_the_example_line_is_found_in_a_log(own: Path) -> None:
    log = own / "crash.log"
    log.write_text("RuntimeError: replay pool: wanted 3.00 GiB, 1.25 GiB free on cuda:2\n")
    crash = open_session(SessionRequest(None, (log,), knowledge=(own,))).crash
    assert (crash.evidence[0].signature, crash.evidence[0].fields["tried_bytes"]) == ("toy-pool-full", 3 * 2**30)
