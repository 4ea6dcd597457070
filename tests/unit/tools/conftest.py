"""The real program of a call, in a plain process: what is shipped here is run there."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_PATH = Path(__file__).parents[2] / "fixtures" / "one_call.py"


@pytest.fixture(scope="session")
def one_call() -> Any:
    if "one_call" in sys.modules:
        return sys.modules["one_call"]
    spec = importlib.util.spec_from_file_location("one_call", _PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["one_call"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def arrive(one_call: Any) -> Callable[..., Any]:
    """Runs what was shipped and returns the data of its answer."""

    def run(shipment: Any, **arguments: Any) -> Any:
        payload = {"action": "call", "tool": shipment.payload(), "arguments": arguments, "context": {}}
        return one_call.start(payload).data

    return run
