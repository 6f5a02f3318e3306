"""The documentation site: a page for everything that is known, and links that lead somewhere."""

from __future__ import annotations

import posixpath
import re

import pytest

from advisor.knowledge import load_knowledge
from website import pages

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_TARGETS = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    return pages.pages()


def test_everything_that_is_known_has_a_page_with_its_title(site: dict[str, str]) -> None:
    knowledge = load_knowledge()
    told = {name: site[path] for name, path in dict(pages._paths(knowledge)).items()}
    for group in (knowledge.tree.causes, knowledge.remedies, knowledge.cases, knowledge.knobs):
        for entry in group:
            assert pages._plain(entry.title) in told[entry.id], entry.id
    assert told["logits-too-big"].startswith("# The logits of one pass do not fit\n")
    for framework in knowledge.frameworks:
        for key in (*framework.settings, *framework.environment):
            assert pages._plain(framework.title) in _LINK.sub(r"\1", told[key]), (framework.framework, key)
            assert f"[{pages._plain(key)}](" in told[framework.framework]


def test_no_two_entries_share_a_page_even_where_case_does_not_count(site: dict[str, str]) -> None:
    paths = list(dict(pages._paths(load_knowledge())).values())
    assert len({path.lower() for path in paths}) == len(paths)


def test_every_link_inside_the_site_leads_to_a_page_or_a_picture(site: dict[str, str]) -> None:
    there = {*site, *(path.relative_to(pages.ROOT).as_posix() for path in pages.pictures())}
    for path, text in site.items():
        for target in _TARGETS.findall(text):
            if not target.startswith(("http", "#", "mailto:")):
                whole = posixpath.normpath(posixpath.join(posixpath.dirname(path), target.partition("#")[0]))
                assert whole in there, (path, target)


def test_entries_link_to_each_other_and_to_their_sources(site: dict[str, str]) -> None:
    remedy = site["remedies/lower-rollout-share.md"]
    assert "](../knobs/rollout-memory_share.md)" in remedy
    assert "](../cases/verl-302.md)" in remedy
    assert "](https://github.com/" in "".join(site[path] for path in site if path.startswith("cases/"))


def test_nothing_of_an_entry_is_markup() -> None:
    text = pages._linked("<img src=x> [a](b) *c* `d` | e_f", "here", {})
    assert text == r"\<img src=x\> \[a\](b) \*c\* \`d\` \| e\_f"
