"""What the tests of tools on the web share: resources.yaml on the fly, and keys in the environment."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from servers import images, tavily
from servers.authority import Authority
from toolcage import Session


@pytest.fixture
def open_session(
    installation: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Session]:
    """A session of a policy whose endpoints are these lines of resources.yaml."""
    monkeypatch.setenv("TAVILY_API_KEY", tavily.KEY)
    monkeypatch.setenv("IMAGES_KEY", images.KEY)
    shutil.copy(authority.file, installation.folder / "ca.pem")

    def open_one(policy: str, *endpoints: str, **options: Any) -> Session:
        file = installation.folder / "resources.yaml"
        file.write_text("version: 1\nendpoints:\n" + "".join(endpoints))
        return installation.session(policy, resources=file, **options)

    return open_one
