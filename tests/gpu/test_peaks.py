"""On a GPU: the ledger against torch's own peak. Never in CI; `python -m tests.gpu.table` writes all of it down."""

from __future__ import annotations

import pytest

from tests.gpu.configurations import configurations
from tests.gpu.predicted import ledger_of, predicted

pytestmark = pytest.mark.gpu
CLOSE = 0.10


@pytest.fixture(scope="module")
def device() -> str:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


@pytest.mark.parametrize("configuration", list(configurations()), ids=lambda c: c.name)
def test_a_measured_peak_is_close_to_the_predicted_one(configuration, device):
    from tests.gpu.steps import measure

    ledger = ledger_of(configuration)
    for phase, reading in measure(configuration, device).items():
        if phase in configuration.compared:
            _, expected, _ = predicted(ledger, phase)
            assert abs(expected / reading.peak - 1) <= CLOSE, f"{phase}: {expected} predicted, {reading.peak} measured"
