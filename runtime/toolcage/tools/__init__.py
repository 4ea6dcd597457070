"""The tools: what one is, which there are, and the built-in ones.

The tutorials' class names are found here and loaded when one is first used. In a cage this package is empty but for the
modules that a tool brings along.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcage.tools.tutorial_classes import (
        CalculatorTool,
        CalendarTool,
        CodeExecutionTool,
        DatabaseTool,
        EmailTool,
        FileAnalysisTool,
        ImageGenerationTool,
        WebSearchTool,
        WikipediaTool,
    )

_HOME = {
    "CalculatorTool": "toolcage.tools.tutorial_classes",
    "CalendarTool": "toolcage.tools.tutorial_classes",
    "CodeExecutionTool": "toolcage.tools.tutorial_classes",
    "DatabaseTool": "toolcage.tools.tutorial_classes",
    "EmailTool": "toolcage.tools.tutorial_classes",
    "FileAnalysisTool": "toolcage.tools.tutorial_classes",
    "ImageGenerationTool": "toolcage.tools.tutorial_classes",
    "WebSearchTool": "toolcage.tools.tutorial_classes",
    "WikipediaTool": "toolcage.tools.tutorial_classes",
}

__all__ = [
    "CalculatorTool",
    "CalendarTool",
    "CodeExecutionTool",
    "DatabaseTool",
    "EmailTool",
    "FileAnalysisTool",
    "ImageGenerationTool",
    "WebSearchTool",
    "WikipediaTool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'toolcage.tools' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
