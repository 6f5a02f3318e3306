"""A table without a key is a setting: in prime-rl it alone switches something on."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.request import SessionRequest
from advisor.session import open_session
from tests.stories.told import tell

RUN = """\
max_steps = 9
[model]
name = "Qwen/Qwen3-8B"
[trainer.model]
seq_len = 4096
{more}
[orchestrator]
batch_size = 8
"""


@pytest.mark.parametrize(
    ("more", "on"),
    [("ac = {}", True), ("[trainer.model.ac]", True), ("[trainer.model.ac]\nfreq = 1", True), ("", False)],
)
def test_an_empty_table_switches_gradient_checkpointing_on(tmp_path: Path, more: str, on: bool) -> None:
    (tmp_path / "rl.toml").write_text(RUN.replace("{more}", more))
    script = tmp_path / "run.sh"
    script.write_text("uv run rl @ rl.toml\n")
    request = SessionRequest(script=script, gpus="8xH100-80GB", libraries=("prime-rl=0.5.0",), planned=False)
    assert open_session(request).run.is_on("actor.gradient_checkpointing") is on


def test_a_key_is_set_in_an_empty_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "rl.toml"
    config.write_text(RUN.replace("{more}", "ac = {}"))
    code, _, err = tell(["set", str(config), "trainer.model.ac.freq=2", "-o", str(tmp_path / "new.toml")], capsys)
    assert code == 0, err
    assert "freq = 2" in (tmp_path / "new.toml").read_text()
