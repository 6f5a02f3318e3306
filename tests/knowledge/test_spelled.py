"""Expressions of `statements` are lists of alternatives with words that they share."""

from advisor.knowledge.spelled import spelled


def test_alternatives_are_joined_and_words_put_in():
    told = {"words": {"ram": "ram|memory", "full": ["{ram} full", "oom"]}, "first": ["a {full}", "b"],
            "behind": {"save": ["after {what}{2,3}"]}, "as_it_is": "x|y"}  # fmt: skip
    assert spelled({"statements": told, "frames": []}) == {
        "statements": {
            "first": "(?ai)a (?:(?:ram|memory) full|oom)|b",
            "behind": {"save": "(?ai)after {what}{2,3}"},
            "as_it_is": "x|y",
        },
        "frames": [],
    }
    assert spelled([]) == []
    assert spelled({"statements": {"words": 1}}) == {"statements": {"words": 1}}
