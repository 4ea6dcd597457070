"""The demo's rows as one HTML file that needs nothing else: no script, no link, nothing that is fetched.

All text passes `escape`; a result is shown by its own `to_html`, which escapes fully. A content security policy in the
page forbids whatever would slip through anyway.
"""

from __future__ import annotations

from html import escape
from typing import Final

from toolcage.cli.demo import table
from toolcage.cli.demo.play import Played, Row

LONGEST_ARGUMENTS: Final = 4_000

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2530; --dim: #5b6775; --line: #d5dbe2; --paper: #fbfcfd; --box: #eef2f6;
  --worked: #17723a; --stopped: #0b6a8f; --contained: #3d4fae; --not: #8a5a00; --FAILED: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --dim: #9aa7b5; --line: #36414d; --paper: #14191f;
  --box: #1e262f; --worked: #6fce90; --stopped: #6cc4e6; --contained: #a3b0ff; --not: #e8b45a; --FAILED: #ff8a80; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.5rem; } p { max-width: 60rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 600; } td.ms { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font: 13px/1.4 ui-monospace, monospace; } .dim { color: var(--dim); }
pre { margin: .2rem 0; padding: .5rem; background: var(--box); white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 20rem; overflow: auto; }
summary { cursor: pointer; } dt { color: var(--dim); margin-top: .4rem; } dd { margin: 0; }
.worked { color: var(--worked); } .stopped { color: var(--stopped); } .contained { color: var(--contained); }
.not { color: var(--not); }
.FAILED { color: var(--FAILED); font-weight: 700; }
"""
_VERDICTS: Final = """<p><b class="worked">worked</b>: useful work that succeeded.
<b class="stopped">stopped</b>: refused before anything ran.
<b class="contained">contained</b>: it ran, in a cage of its own, and reached nothing, was ended at a limit or came back
inert. <b class="not">not shown</b>: what it needs is not installed here.
<b class="FAILED">FAILED</b>: it did not end as it must.</p>"""


def page(played: Played) -> str:
    """The whole page."""
    rows = "\n".join(_row(row) for row in played.rows)
    failed = "".join(f'<p class="FAILED">FAILED: {escape(problem)}</p>' for problem in table.problems(played))
    absent = table.not_shown(played)
    failed += "" if absent is None else f'<p class="not">NOT SHOWN: {escape(absent)}</p>'
    verdict = "verifies" if played.audit.ok else "does not verify"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>toolcage demo</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>toolcage demo</h1>
<p>{escape(table.summary(played))}</p>
{failed}{_VERDICTS}
<table>
<thead><tr>
<th>role, tool</th><th>tried, and what came of it</th><th>verdict</th><th>status, code</th><th>ms</th>
</tr></thead>
<tbody>
{rows}
</tbody>
</table>
<p>The audit log {verdict}: {played.audit.records} records in <code>{escape(str(played.audit_path))}</code>.
{escape(played.audit.limits())}</p>
</body>
</html>
"""


def _row(row: Row) -> str:
    result = row.result
    status, code = ("-", "") if result is None else (str(result.status), result.code or "")
    return f"""<tr id="{escape(row.step.name)}">
<td>{escape(row.step.role)}<br><code class="dim">{escape(row.step.tool)}</code></td>
<td><details><summary>{escape(row.step.tried)}<br><span class="dim">{escape(row.problem or row.reason)}</span></summary>
{_details(row)}</details></td>
<td class="{row.verdict}">{row.verdict}</td>
<td>{escape(status)}<br><code class="dim">{escape(code)}</code></td>
<td class="ms">{"-" if result is None else f"{result.duration_ms:.1f}"}</td>
</tr>"""


def _details(row: Row) -> str:
    sent = row.arguments
    if len(sent) > LONGEST_ARGUMENTS:
        sent = f"{sent[:LONGEST_ARGUMENTS]}… ({len(sent)} characters)"
    parts = [f"<p class='dim'>arguments</p>{_arguments(sent)}"]
    if row.result is not None:
        parts.append(f"<p class='dim'>result</p>{row.result.to_html()}")
    if row.saved:
        parts.append(f"<p class='dim'>saved beside this page: {escape(', '.join(row.saved))}</p>")
    return "\n".join(parts)


def _arguments(text: str) -> str:
    """JSON as it was sent; line ends of a program or a statement are shown as line ends."""
    return f"<pre>{escape(text.replace(chr(92) + 'n', chr(10)))}</pre>"
