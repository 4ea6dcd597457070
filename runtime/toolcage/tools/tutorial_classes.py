"""The class names of tutorials for the built-in tools: the same tools, called by the line under the tutorials' names.

`WebSearchTool().execute(query="…")` inside a session is a call of `web_search`, which is `search_web` with the
tutorials' defaults. The body is never run here and the key never goes anywhere: through the line it comes from the
endpoint that the operator named. That the environment has one is asked at construction, where tutorials expect it.
"""

from __future__ import annotations

import os

from toolcage.tools.analyze_file import AnalyzeFile
from toolcage.tools.calculate_expression import CalculateExpression
from toolcage.tools.execute_python import ExecutePython
from toolcage.tools.generate_image import GenerateImage
from toolcage.tools.list_events import ListEvents
from toolcage.tools.query_database import QueryDatabase
from toolcage.tools.search_web import PARAMETERS, PROPERTIES, SearchWeb
from toolcage.tools.search_wikipedia import SearchWikipedia
from toolcage.tools.send_email import SendEmail

KEY_VARIABLE = "TAVILY_API_KEY"


class WebSearchTool(SearchWeb):
    """Searches the web; three results unless told otherwise. Raises ValueError where TAVILY_API_KEY is not set."""

    name = "web_search"
    parameters = PARAMETERS | {"properties": PROPERTIES | {"num_results": PROPERTIES["num_results"] | {"default": 3}}}

    def __init__(self) -> None:
        if not os.environ.get(KEY_VARIABLE):
            raise ValueError(f"{KEY_VARIABLE} is not set; the web search needs a key")


class WikipediaTool(SearchWikipedia):
    """Looks an article up."""

    name = "wikipedia_search"


class ImageGenerationTool(GenerateImage):
    """Makes pictures."""


class CodeExecutionTool(ExecutePython):
    """Runs a Python program."""


class CalculatorTool(CalculateExpression):
    """Evaluates an expression."""

    name = "calculate"


class DatabaseTool(QueryDatabase):
    """Reads rows. Describing a database and changing rows are tools of their own."""


class FileAnalysisTool(AnalyzeFile):
    """Describes a data file."""


class EmailTool(SendEmail):
    """Sends a message. Reading a mailbox is a tool of its own."""


class CalendarTool(ListEvents):
    """Lists events. Making, changing and removing one are tools of their own."""
