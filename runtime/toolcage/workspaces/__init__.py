"""Workspaces on the host: where files of an operator's folder, or of one session, are read, listed and written.

`folder` works on one host folder, `memory` on the files of one session, which are on no disk; both answer as `store`
says. The host's side of the exchange, so trusted: a cage never sees a folder of the host, only copies of single files.
Knows no call, no policy and no cage: `line/workspace.py` says what of a call goes in and what comes back.
"""

from toolcage.workspaces.folder import FolderStore
from toolcage.workspaces.memory import SessionStores
from toolcage.workspaces.store import FILE_BYTES, Entry, Listing, Quota, Seen, Staged, Store, check_names, seen

__all__ = [
    "FILE_BYTES",
    "Entry",
    "FolderStore",
    "Listing",
    "Quota",
    "Seen",
    "SessionStores",
    "Staged",
    "Store",
    "check_names",
    "seen",
]
