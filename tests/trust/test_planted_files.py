"""Files that somebody else put where we keep ours: advice is made of knowledge, so nobody else's is taken for it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from advisor.knowledge import load_knowledge
from advisor.knowledge.load import forget_knowledge
from advisor.rules.expression import encode
from tests.replacing import replace


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The compiled knowledge in the cache folder, changed. Compiling anew, which takes seconds, gives ours at once."""
    ours = load_knowledge()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("advisor.knowledge.load.compile_knowledge", lambda *_: replace(ours, digest="compiled"))
    forget_knowledge()
    planted = replace(load_knowledge(), digest="planted")
    (file,) = tmp_path.rglob("knowledge-*.msgpack")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(msgspec.msgpack.encode(planted, enc_hook=encode))
    forget_knowledge()
    yield file
    forget_knowledge()


def test_our_own_compiled_knowledge_is_read_again(compiled):
    assert load_knowledge().digest == "planted"


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_what_others_may_write_is_compiled_anew(compiled, mode):
    compiled.chmod(mode)
    assert load_knowledge().digest == "compiled"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_somebody_else_owns_is_compiled_anew(compiled):
    os.chown(compiled, 65534, -1)
    assert load_knowledge().digest == "compiled"


def test_a_damaged_one_is_compiled_anew(compiled):
    compiled.write_bytes(b'{"digest": "planted"}')
    assert load_knowledge().digest == "compiled"
