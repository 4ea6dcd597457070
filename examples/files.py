"""Files of a workspace: what is granted, and what is not.

    python examples/files.py

The role may read the whole folder and write below `reports`. The cage gets a copy of the one file that a call names.
"""

import tempfile
from pathlib import Path

from toolcage import Runtime

POLICY = """
version: 1
role: clerk
tools:
  read_file:
    resources: {workspace: [office]}
    allow: [{}]
  write_file:
    resources: {workspace: [office]}
    allow:
      - path: {paths: {under: [reports], suffixes: [.md]}}
  list_files:
    resources: {workspace: [office]}
    allow: [{}]
"""
RESOURCES = """
version: 1
workspaces:
  office: {folder: office, access: rw, quota: 1MiB, files: 100}
"""

with tempfile.TemporaryDirectory() as made:
    folder = Path(made)
    (folder / "office" / "reports").mkdir(parents=True)
    (folder / "office" / "orders.csv").write_text("id,total\n1,19.5\n2,42.0\n")
    (folder / "private.txt").write_text("not in the workspace")
    (folder / "office" / "link.txt").symlink_to(folder / "private.txt")
    (folder / "clerk.yaml").write_text(POLICY)
    (folder / "resources.yaml").write_text(RESOURCES)
    with (
        Runtime.from_files(folder / "clerk.yaml", resources=folder / "resources.yaml") as runtime,
        runtime.session(request="Report on the orders.") as session,
    ):
        for tool, arguments in (
            ("list_files", {}),
            ("read_file", {"path": "orders.csv", "limit": 2}),
            ("write_file", {"path": "reports/may.md", "content": "# May\n"}),
            ("write_file", {"path": "reports/may.md", "content": "Two orders, 61.5.\n", "mode": "append"}),
            ("write_file", {"path": "orders.csv", "content": ""}),
            ("read_file", {"path": "../private.txt"}),
            ("read_file", {"path": "link.txt"}),
        ):
            result = session.call(tool, arguments)
            print(f"{tool:10} {result.status:8} {result.code or ''} {result.data or result.error}")
    print((folder / "office" / "reports" / "may.md").read_text())
