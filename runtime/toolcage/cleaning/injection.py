"""Text that speaks to the model instead of the user: a list of signals and a score.

Danger: instructions in a page, a mail or a file that the model follows as if they were the user's. Protects: nothing by
itself. It flags; the boundaries (role, grants, approval, network) must hold when it says nothing, because an ordinary
sentence can be an attack and no wording tells them apart.

First size: a handful of English phrasings, each with a weight, bounded and linear. A finding names the signal and where
it stands, so that a person can judge it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolcage.cleaning.marks import views

SUSPECT_SCORE = 1.0
_LONGEST_EXCERPT = 120
_SHORTEST_PHRASE = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One phrase that speaks to a model. `excerpt` is from the text and as untrusted as the text."""

    name: str
    weight: float
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """What was found. `score` adds each kind of signal once."""

    score: float
    signals: tuple[Signal, ...]

    @property
    def suspected(self) -> bool:
        """Whether the score reaches the threshold for the label."""
        return self.score >= SUSPECT_SCORE


_W = r"(?:\W{1,3}\w{1,20})"
_RULES: tuple[tuple[str, float, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (name, weight, hints, re.compile(pattern))
    for name, weight, hints, pattern in (
        (
            "override",
            1.0,
            ("ignore", "disregard", "forget", "override", "bypass"),
            rf"(?:ignore|disregard|forget|override|bypass){_W}{{0,4}}\W{{1,3}}(?:previous|prior|above|earlier|preceding"
            rf"|foregoing|existing|original|initial|system|your|safety){_W}{{0,3}}?\W{{1,3}}(?:instruction|prompt|rule|direction"
            rf"|directive|guideline|message|command|programming|training|context)",
        ),
        (
            "override",
            1.0,
            ("ignore all", "ignore every", "forget every", "forget all", "disregard every", "disregard all"),
            rf"(?:ignore|forget|disregard)\W{{1,3}}(?:all|everything|every){_W}{{0,4}}\W{{1,3}}(?:instruction|prompt"
            rf"|rule|before|above|told)",
        ),
        (
            "new_instructions",
            0.7,
            ("instruction", "directive", "task"),
            r"(?:new|updated|real|actual|following|important)\W{1,3}(?:system\W{1,3})?(?:instructions?|directives?"
            r"|task)\s{0,3}:",
        ),
        (
            "role",
            0.7,
            ("you are now", "from now on", "pretend", "act as"),
            r"(?:you are now|from now on,? you|pretend (?:to be|that you|you)|act as (?:if you|an? (?:unrestricted"
            r"|unfiltered|evil|ai)))",
        ),
        (
            "system_prompt",
            0.7,
            ("system prompt", "system message", "hidden prompt", "initial prompt"),
            rf"(?:reveal|print|repeat|show|output|leak|tell|display|share|send){_W}{{0,5}}\W{{1,3}}(?:system|hidden"
            rf"|initial)\W{{1,3}}(?:prompt|message)",
        ),
        (
            "addresses_model",
            0.6,
            ("ai", "assistant", "llm", "language model", "chatbot", "agent"),
            r"(?:attention|note (?:to|for)|important(?: message)? (?:to|for)|message (?:to|for)|instructions? (?:to"
            r"|for)|hey|dear)"
            r",? (?:the |any |all |this )?(?:ai|llm|language|assistant|chatbot|agent|automated)(?: (?:model|assistant"
            r"|agent)s?)?\b",
        ),
        (
            "addresses_model",
            0.6,
            ("you are an", "if you are", "as an ai"),
            r"(?:if you(?: are|'re)|you(?: are|'re)|as) (?:an? |the )?(?:ai|llm|large language model|language model"
            r"|automated agent|chatbot)\b",
        ),
        (
            "secrecy",
            0.6,
            ("user",),
            rf"(?:do not|don't|never|without){_W}{{0,2}}\W{{1,3}}(?:tell|telling|mention|mentioning|inform|informing"
            rf"|reveal|alert|notify|notifying|asking)"
            rf"{_W}{{0,4}}\W{{1,3}}(?:the )?user",
        ),
        (
            "jailbreak",
            0.7,
            ("jailbreak", "developer mode", "do anything now", "no restrictions", "unfiltered"),
            r"(?:jailbr(?:eak|oken)|developer mode|do anything now|(?:have|has|with) no restrictions|unfiltered (?:ai"
            r"|response|mode))",
        ),
        (
            "exfiltrate",
            0.6,
            ("send", "forward", "upload", "post", "email", "exfiltrate"),
            rf"(?:send|forward|upload|post|e-?mail|exfiltrate){_W}{{0,6}}\W{{1,3}}(?:password|credential|api key|secret"
            rf"|conversation|chat history"
            rf"|system prompt|access token|private key|environment variable)",
        ),
        (
            "fake_turn",
            0.5,
            ("system:", "assistant:", "instruction:", "system]", "‹"),
            r"(?:^|\n)\s{0,4}(?:#{1,4} ?|\[)?(?:system|assistant|instruction)s?(?:\]|\s?:)|‹[^‹›\n]{1,80}›",
        ),
    )
)


_HINTS = frozenset(hint for _, _, hints, _ in _RULES for hint in hints)
_NOTHING = Suspicion(score=0.0, signals=())


def suspect(text: str) -> Suspicion:
    """The signals in a text and their score. Never raises, changes nothing."""
    if len(text) < _SHORTEST_PHRASE:
        return _NOTHING
    signals: dict[str, Signal] = {}
    for view in views(text):
        lowered = view.text.lower()
        present = {hint for hint in _HINTS if hint in lowered}
        for name, weight, hints, pattern in _RULES if present else ():
            if name in signals or present.isdisjoint(hints):
                continue
            match = pattern.search(lowered)
            if match is not None:
                signals[name] = Signal(name=name, weight=weight, excerpt=match[0][:_LONGEST_EXCERPT])
    return Suspicion(score=round(sum(s.weight for s in signals.values()), 3), signals=tuple(signals.values()))
