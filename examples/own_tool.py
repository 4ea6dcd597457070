"""Tools of your own: one that this program defines, and one in a stranger's file that it never imports.

    python examples/own_tool.py

A cage imports this very file to find `count_words`, under its own name. So what a tool needs stands at the top, the
rest of toolcage is imported where it is used, and nothing runs at import.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from toolcage import tool

POLICY = """
version: 1
role: writer
tools:
  count_words:
    allow:
      - text: {maxLength: 1000}
  reverse_text:
    allow: [{}]
"""
STRANGERS_FILE = '''
import os
from toolcage import tool

os.environ.clear()      # runs when the file is imported, so it is only ever imported in a cage


@tool
def reverse_text(text: str) -> str:
    """Turns a text around."""
    return text[::-1]
'''


@tool
def count_words(text: str) -> dict[str, int]:
    """Counts the words and the characters of a text."""
    return {"words": len(text.split()), "characters": len(text)}


def main(folder: Path) -> None:
    from toolcage import Runtime

    policy, stranger = folder / "writer.yaml", folder / "their_tools.py"
    policy.write_text(POLICY)
    stranger.write_text(STRANGERS_FILE)
    with Runtime.from_files(policy, tools=[count_words, stranger]) as runtime, runtime.session() as session:
        print(session.call("count_words", {"text": "two words"}).data)
        print(session.call("count_words", {"text": "x" * 2000}).code)
        print(session.call("reverse_text", {"text": "stressed"}).data)
        print(count_words(text="a tool is a function that goes through the line").data)
    print(count_words(text="outside a session").code)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
