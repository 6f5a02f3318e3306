"""What CI installs: every package we ask for, at a version within its range, with hashes, from wherever pip looks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / ".ci" / "requirements.lock"
pytestmark = pytest.mark.skipif(not LOCK.exists(), reason="not a checkout")


def locked() -> dict[str, str]:
    pins = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+) \\$", LOCK.read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def test_everything_asked_for_is_locked_within_its_range():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"], *extras["test"], *extras["dev"]]
    wanted = [Requirement(text) for text in asked if not text.startswith("rl-oom-advisor")]
    versions = locked()
    assert len(wanted) > 20
    assert [str(one) for one in wanted if not one.specifier.contains(versions[canonicalize_name(one.name)])] == []


def test_every_locked_package_has_its_hashes_and_no_place():
    text = LOCK.read_text()
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(locked())
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry) for entry in entries)
    assert "://" not in text
    assert not re.search(r"^\s*-", re.sub(r"^    --hash=\S+.*$", "", text, flags=re.MULTILINE), re.MULTILINE)
