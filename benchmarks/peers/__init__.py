"""Other sandboxes on the same engine, the same image's Python and the same program. See README.md."""
