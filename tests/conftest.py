"""What every test shares: no settings of whoever runs them; property tests answer to findings, not to speed."""

from __future__ import annotations

import compileall
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from advisor.knowledge import load_knowledge
from advisor.language import ENGLISH, LANGUAGES, rename, speak, spoken
from advisor.words import speak_of
from tests.heavy import ASKED, examples, heavy


def pytest_configure(config: pytest.Config) -> None:
    """One cache for all processes of these tests; the program is compiled once, before they start.

    What pytest makes of the tests is kept as well: seven seconds of each process.
    """
    if config.option.markexpr == "heavy":
        os.environ[ASKED] = "1"
    # A slow first draw on a loaded two-core machine is no defect of the code under test.
    checks = [HealthCheck.too_slow]
    settings.register_profile("any_machine", deadline=None, max_examples=examples(60), suppress_health_check=checks)
    settings.load_profile("any_machine")
    sys.dont_write_bytecode = False
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.mkdtemp(prefix="tests-cache-")
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
        os.environ["XDG_CACHE_HOME"] = folder
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        compileall.compile_dir(Path(__file__).parents[1] / "advisor", quiet=2)
        if getattr(config.option, "numprocesses", None):  # else each process would compile the knowledge for itself
            for language in LANGUAGES:
                load_knowledge(language)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is marked `heavy` where no `-m` was given; properties are tried on more where heavy ones are asked
    for."""
    if config.option.markexpr:
        for item in items if ASKED in os.environ else ():
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(heavy)
        return
    left_out = [item for item in items if item.get_closest_marker("heavy")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("heavy")]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of collected tests stay to the end; looking through them again and again is a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for knowledge and settings of one's own."""
    folder = tmp_path_factory.getbasetemp() / "nobodys-settings"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def english_afterwards() -> Iterator[None]:
    """A test that speaks another language, of given answers or of another vendor leaves none of it to the next."""
    yield
    speak_of("generated")
    rename(None)
    if spoken() != ENGLISH:
        speak(ENGLISH)
