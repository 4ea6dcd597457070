"""The policy files that the paths of a command stand for.

People keep resources.yaml beside their policies, so one that a folder holds is passed over, and that is told: it is no
role, and reading it as one would fail the whole folder. A file that is named itself is always read as a policy, and so
is whatever cannot be read: the loader says what is wrong with it. A runtime passes nothing over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from toolcage.audit.report import visible
from toolcage.errors import PolicyError
from toolcage.policy.load import policy_files
from toolcage.strict_yaml import read_document


def named_policies(paths: Sequence[Path]) -> list[Path]:
    """The files, in order; a folder stands for the policies in it. Raises PolicyError where there is none."""
    return [path for path in policy_files(paths) if path in paths or not _is_resources(path)]


def _is_resources(path: Path) -> bool:
    from toolcage.resources.file_format import ResourcesFile

    try:
        data = read_document(path, PolicyError).data
    except PolicyError:
        return False
    kinds = ResourcesFile.model_fields.keys() - {"version"}
    if not isinstance(data, dict) or "role" in data or not data.keys() & kinds:
        return False
    typer.echo(f"note: {visible(str(path))} is a resources file, not a policy; passed over", err=True)
    return True
