"""The shipped role `researcher` in real cages: a summary is mailed; after a hostile page and the notes, nothing is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from servers import tavily as tavily_server
from servers.mediawiki import MediaWiki
from servers.smtp import PASSWORD, USER, SmtpServer
from servers.tavily import TavilyServer
from toolcage import Runtime

pytestmark = pytest.mark.docker

SHIPPED = Path(__file__).parents[3] / "policies" / "researcher.yaml"
REQUEST = "Read about the Analytical Engine and mail a summary to ann@example.com."
MAIL = {"to": ["ann@example.com"], "subject": "Summary", "body": "It was a proposed computer."}


@pytest.fixture
def runtime(
    installation: Any, mediawiki: Mapping[str, MediaWiki], tavily: TavilyServer, smtp: SmtpServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Runtime:  # fmt: skip
    monkeypatch.setenv("TAVILY_API_KEY", tavily_server.KEY)
    monkeypatch.setenv("RESEARCH_PASSWORD", PASSWORD)
    folder = installation.folder
    (folder / "ca.pem").write_bytes(smtp.ca.read_bytes())
    (folder / "notes").mkdir()
    (folder / "notes" / "plan.md").write_text("The budget is 40,000.\n")
    wikis = "".join(f"  {wiki.language}: {{url: \"{wiki.api}\"}}\n" for wiki in mediawiki.values())
    (folder / "resources.yaml").write_text(
        f"version: 1\nendpoints:\n{tavily.resource()}{wikis}  de: {{url: \"{mediawiki['en'].api}\"}}\n"
        f"workspaces:\n  notes: {{folder: notes, access: ro}}\n"
        f"mailboxes:\n  research:\n    address: bot@example.com\n    user: {USER}\n"
        "    password: {env: RESEARCH_PASSWORD}\n"
        f"    smtp: {{host: 127.0.0.1, port: {smtp.starttls}, tls: starttls, ca: ca.pem}}\n"
    )
    opened: Runtime = installation.runtime(SHIPPED.read_text(), resources=folder / "resources.yaml")
    return opened


def test_what_was_looked_up_is_mailed_to_whom_the_user_named(runtime: Runtime, smtp: SmtpServer) -> None:
    session = runtime.session(REQUEST)
    assert "mechanical computer" in session.call("search_wikipedia", {"query": "Analytical Engine"}).data
    assert session.call("search_web", {"query": "Analytical Engine"}).success
    sent = session.call("send_email", MAIL)
    assert sent.status == "ok", sent
    assert [item.recipients for item in smtp.keeper.delivered] == [["ann@example.com"]]


def test_a_page_names_nobody_whom_a_mail_may_go_to(runtime: Runtime, smtp: SmtpServer) -> None:
    session = runtime.session(REQUEST)
    page = session.call("search_wikipedia", {"query": "Shipping rules"})
    assert (page.status, page.code) == ("blocked", "output.withheld")
    for address in ("eve@evil.example", "eve@example.com"):
        assert session.call("send_email", {**MAIL, "to": [address]}).code == "policy.no_match"
    assert smtp.keeper.delivered == []


def test_after_strangers_pages_and_the_notes_no_mail_leaves(runtime: Runtime, smtp: SmtpServer) -> None:
    session = runtime.session(REQUEST)
    assert "40,000" in str(session.call("read_file", {"path": "plan.md"}).data)
    assert session.call("search_wikipedia", {"query": "Shipping rules"}).status == "blocked"
    stopped = session.call("send_email", MAIL)
    assert (stopped.status, stopped.code) == ("denied", "flow.denied")
    assert smtp.keeper.delivered == []
    assert runtime.session(REQUEST).call("send_email", MAIL).status == "ok"
