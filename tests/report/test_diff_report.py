"""Unified diffs of rewrites."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from advisor.report.diff_report import diff_report
from advisor.script.document import Document, Edit, Rewrite, apply_edits


def rewrite(old: bytes, *edits: Edit) -> Rewrite:
    return Rewrite(Document(Path("run.sh"), old, "shell"), apply_edits(old, edits), edits)


def test_a_change_is_shown_with_its_surroundings():
    old = b"".join(b"line %d\n" % n for n in range(1, 12))
    at = old.index(b"6\n")
    assert diff_report([rewrite(old, Edit(at, at + 1, b"six"))], ["run.fits.sh"]) == (
        "--- run.sh\n+++ run.fits.sh\n@@ -3,7 +3,7 @@\n"
        " line 3\n line 4\n line 5\n-line 6\n+line six\n line 7\n line 8\n line 9\n"
    )


def test_no_change_no_diff():
    assert diff_report([rewrite(b"a\n")]) == ""


@pytest.mark.parametrize(("old", "new"), [(b"a\nb", b"a\nc"), (b"a\n", b"a"), (b"", b"a\n"), (b"a\nb\n", b"b\n")])
def test_the_diff_is_one_that_patch_applies(old, new, tmp_path):
    done = Rewrite(Document(tmp_path / "run.sh", old, "shell"), new, ())
    (tmp_path / "run.sh").write_bytes(old)
    text = diff_report([done])
    subprocess.run(["patch", "-s", str(tmp_path / "run.sh")], input=text.encode(), check=True)
    assert (tmp_path / "run.sh").read_bytes() == new


def test_a_carriage_return_is_shown_and_nothing_else_of_its_kind_passes():
    text = diff_report([rewrite(b"a\r\n\x1b[31mred\n", Edit(0, 1, b"b"))])
    assert "-a^M\n+b^M\n red\n" in text
    assert "\x1b" not in text
    assert "\r" not in text
