"""The fuzz targets under atheris: coverage-guided, as long as one likes. `make fuzz` runs each for a minute.

    python tests/fuzz/atheris/run.py TARGET [libFuzzer options, such as -max_total_time=60 CORPUS_FOLDER]

What crashes is written to the folder named by `-artifact_prefix=`; keep it in `tests/fuzz/crashes/TARGET/`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["toolcage"]):
    import targets


def main() -> None:
    """Fuzzes the target that the first argument names."""
    if sys.argv[1:] == ["--list"]:
        print(" ".join(targets.TARGETS))
        return
    if len(sys.argv) < 2 or sys.argv[1] not in targets.TARGETS:
        sys.exit(f"usage: run.py TARGET [options]; targets: {', '.join(targets.TARGETS)}")
    target = targets.TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
