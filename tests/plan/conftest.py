"""Fixtures of the plan's tests."""

from tests.plan.planned import planned

__all__ = ["planned"]
