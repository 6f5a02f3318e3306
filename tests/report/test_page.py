"""The page to send: whole HTML, nothing of strangers in it but text, and the numbers of the other reports."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from advisor.report.page_report import page_report
from advisor.units import show_gib
from tests.report.sitting import sitting, unknown_sitting
from tests.report.test_text_and_markdown import hostile_sitting
from tests.stories.told import tell

DIFF = "--- run.sh\n+++ run.fits.sh\n-n=8 <b>\n+n=4 <b>\n"
_VOID = {"meta", "br", "hr"}


class Page(HTMLParser):
    """Tags in order, what stands open at the end, and the words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words += data


@pytest.mark.parametrize(
    "state", [sitting(), unknown_sitting(), hostile_sitting()], ids=["known", "unknown", "hostile"]
)
def test_a_page_is_whole_and_holds_no_tag_of_a_stranger(state):
    page = Page(page_report(state, DIFF))
    assert page.open == []
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "a", "iframe", "link"}
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_the_bars_show_the_sums_of_the_ledger_before_and_after():
    state = sitting()
    words = " ".join(Page(page_report(state, DIFF)).words.split())
    for ledger in (state.ledger, state.plan.after):
        for each in (*ledger.gpu, *ledger.host):
            assert f"{show_gib(each.expected)} of" in words


def test_a_page_of_the_demo_has_verdict_bars_and_diff_and_none_of_a_secret(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_text(
        "export WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567\n"
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct"
        " data.train_batch_size=64"
        " actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8"
        " trainer.n_gpus_per_node=4\n"
    )
    Path("train.log").write_text(
        '  File "verl/workers/actor/dp_actor.py", line 300, in update_policy\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of "
        "79.15 GiB of which 1.00 GiB is free.\n"
    )
    words = ["diagnose", "run.sh", "--log", "train.log", "--gpus", "4xA100-80GB", "--format", "html"]
    code, out, _ = tell(words, capsys)
    page = Page(out)
    assert code == 0
    assert "GPU memory ran out during the actor update" in page.words
    assert "+++ run.sh" in page.words
    assert "0123456789abcdef" not in out
