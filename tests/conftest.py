"""What every test shares: property tests answer to their findings, not to how fast the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A slow first draw on a loaded two-core machine is no defect of the code under test.
settings.register_profile("any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_machine")
