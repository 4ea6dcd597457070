"""clean → what came out of the cage, decoded, capped, neutralised, redacted and labelled.

Trusts only that the output came from execute (its seal) and the terms that authorize fixed. Every part passes: data
with its keys, stdout, stderr, the refusal's message and hint (exception texts carry keys and addresses), the names of
artifacts. Contents of artifacts stay exact. It decides nothing about the call; where the policy says that output which
speaks to the model is not to be shown (`on_injection: withhold`, or `ask` until a person released it), it withholds it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from toolcage.cleaning import Cleaned, clean_bytes, clean_json
from toolcage.cleaning.artifacts import artifact_name, media_type
from toolcage.cleaning.pipeline import clean_string
from toolcage.types import Artifact, CageOutput, CleanOutput, OutputTerms, Refusal, Truncation, claim_seal, require

_mint = claim_seal(CleanOutput)

_LONGEST_MESSAGE_BYTES: Final = 4096
_LONGEST_LAST_LINE: Final = 1000
_NO_MODULE: Final = (
    "This sandbox does not have that module: use the standard library, or ask the operator to grant an image that has "
    "it (`data` has numpy, pandas and matplotlib)."
)


def clean(output: CageOutput, exact_secrets: Sequence[str] = (), *, released: bool = False) -> CleanOutput:
    """The same output, fit for a model, a terminal, a log and a page. `exact_secrets` are redacted in every encoding.
    `released`: a person was asked and lets the model read it (see `release`).

    Raises:
        TypeError: `output` is not the genuine output of execute.
        ValueError: the terms name something to redact that does not exist.
    """
    output = require(output, CageOutput)
    terms = output.approved.screened.authorized.output
    already = {one.part: one for one in output.truncated if one.dropped != 0}
    stdout = clean_bytes(output.stdout, terms, exact_secrets, cut_before="stdout" in already)
    stderr = clean_bytes(output.stderr, terms, exact_secrets, cut_before="stderr" in already)
    data = clean_json(None if output.refusal else output.data, terms, exact_secrets)
    last_line = "" if "stderr" in already else _last_line(output)
    error = _message(_told(output.refusal, last_line), terms, exact_secrets)
    hint = _message(_hint(output.refusal, last_line), terms, exact_secrets)
    artifacts = _artifacts(output.artifacts, exact_secrets)
    truncated = _truncations(
        already, {"stdout": (stdout.kept, stdout.dropped), "stderr": (stderr.kept, stderr.dropped),
                  "data": (data.kept, data.dropped)},
    )  # fmt: skip
    findings: Counter[str] = sum((c.findings for c in (stdout, stderr, data, error, hint) if c), Counter())
    if any(one.part != "session" for one in truncated):
        findings["truncated"] = max(findings["truncated"], 1)
    if "session" in already:  # its variables and files, not something of this output
        findings["session_restarted"] = 1
    if output.egress_denied:
        findings["egress_denied"] = output.egress_denied
    withheld = bool(findings["injection_suspected"]) and terms.on_injection != "flag" and not released
    return _mint(
        output=output,
        data=None if withheld else data.value,
        error=error.text if error and not withheld else None,
        hint=hint.text if hint and not withheld else None,
        stdout="" if withheld else stdout.text,
        stderr="" if withheld else stderr.text,
        artifacts=() if withheld else artifacts,
        truncated=truncated,
        labels=_labels(findings, private=output.private, withheld=withheld),
        findings=MappingProxyType(dict(findings)),
    )


def _last_line(output: CageOutput) -> str:
    """What a Python program that failed says last: the exception. Empty for any other tool, and when it is very long
    (a cut before redaction could leave half a secret)."""
    refusal, declaration = output.refusal, output.approved.screened.authorized.valid.declaration
    if refusal is None or refusal.code != "program.exit" or "python" not in declaration.kinds.values():
        return ""
    lines = output.stderr.decode("utf-8", "replace").rstrip().splitlines()
    return lines[-1] if lines and len(lines[-1]) <= _LONGEST_LAST_LINE else ""


def _told(refusal: Refusal | None, last_line: str) -> str | None:
    if refusal is None or not last_line:
        return refusal.message if refusal else None
    return f"{refusal.message}: {last_line}"


def _hint(refusal: Refusal | None, last_line: str) -> str | None:
    if last_line.startswith("ModuleNotFoundError:"):
        return _NO_MODULE
    return refusal.hint if refusal else None


def _message(text: str | None, terms: OutputTerms, exact_secrets: Sequence[str]) -> Cleaned | None:
    return None if text is None else clean_string(text, terms, exact_secrets, _LONGEST_MESSAGE_BYTES)


def _artifacts(artifacts: Sequence[Artifact], exact_secrets: Sequence[str]) -> tuple[Artifact, ...]:
    cleaned: list[Artifact] = []
    taken: set[str] = set()
    for artifact in artifacts:
        name = artifact_name(artifact.name, taken, exact_secrets)
        taken.add(name)
        cleaned.append(dataclasses.replace(artifact, name=name, media_type=media_type(name, artifact.content)))
    return tuple(cleaned)


def _truncations(already: dict[str, Truncation], here: dict[str, tuple[int, int]]) -> tuple[Truncation, ...]:
    """One record per part: what the cage's reader cut and what cleaning cut, together."""
    made = {part: one for part, one in already.items() if part not in here}
    for part, (kept, dropped) in here.items():
        before = already.get(part)
        if before is not None:
            unknown = before.dropped is None
            made[part] = Truncation(part=part, kept=kept, dropped=None if unknown else dropped + (before.dropped or 0))
        elif dropped:
            made[part] = Truncation(part=part, kept=kept, dropped=dropped)
    return tuple(made[part] for part in sorted(made))


def _labels(findings: Counter[str], *, private: bool, withheld: bool) -> tuple[str, ...]:
    labels = ["untrusted"]
    if private:
        labels.append("private")
    if withheld:
        labels.append("withheld")
    return (*labels, *sorted(name for name, count in findings.items() if count > 0))
