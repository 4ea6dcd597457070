"""The `toolcage` command: one module per command, loaded when it is used.

Exit codes: 0 success, 1 refused or failed, 2 usage, 3 sandbox unavailable.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from toolcage import __version__
from toolcage.cli import attest, audit, call, demo, doctor, images, policy, scan, tools
from toolcage.errors import EngineError, ImageError, ToolcageError

app = typer.Typer(
    name="toolcage",
    help="A secure tool runtime for AI agents: one policy file per role, every call in a hardened container.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("attest")(attest.attest)
app.command("call")(call.call)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("scan")(scan.scan)
app.add_typer(audit.app, name="audit", help="Verify and show audit logs.")
app.add_typer(images.app, name="images", help="Build, list and verify the sandbox images.")
app.add_typer(tools.app, name="tools", help="Declare tools from the description of an interface.")
app.add_typer(policy.app, name="policy", help="Check and test policy files.")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"toolcage {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A secure tool runtime for AI agents: one policy file per role, every call in a hardened container."""


def main() -> None:
    """Runs the command line; an error of the product's own is one clear line on stderr."""
    try:
        app()
    except ToolcageError as error:
        print(f"toolcage: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, EngineError | ImageError) else 2)
