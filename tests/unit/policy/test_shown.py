"""What the model is told of a tool's state follows from the grant's isolation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolcage.policy.model import Role

LASTING = "{isolation: session}, accept_weaker: a notebook for one"


@pytest.mark.parametrize(
    ("sandbox", "told"),
    [
        ("{isolation: container}", "nothing is kept from earlier calls"),
        ("{isolation: namespace}, accept_weaker: our own programs only", "nothing is kept from earlier calls"),
        (LASTING, "variables, imports and files stay for your next calls"),
    ],
)
def test_the_state_of_a_program_is_told_as_the_grants_isolation_has_it(
    sandbox: str, told: str, load: Callable[..., Role]
) -> None:
    role = load(f"version: 1\nrole: r\ntools: {{execute_python: {{allow: [{{}}], sandbox: {sandbox}}}}}\n")
    description = role.shown()[0].description
    assert told in description
    assert description.count("State: ") == 1
    assert role.grants["execute_python"].declaration.description in description


def test_a_tool_that_runs_no_program_is_shown_as_it_describes_itself(load: Callable[..., Role]) -> None:
    role = load(f"version: 1\nrole: r\ntools: {{calculate_expression: {{allow: [{{}}], sandbox: {LASTING}}}}}\n")
    assert role.shown() == (role.grants["calculate_expression"].declaration,)
