#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (60) under atheris, or where that cannot be installed with many more hypothesis
# examples. What crashes is kept in tests/fuzz/crashes/TARGET/, which the short run of `make test` then runs first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly seconds=${FUZZ_SECONDS:-60}
readonly work=.hypothesis/atheris

if ! .venv/bin/python -c 'import atheris' 2>/dev/null && ! .venv/bin/python -m pip install --quiet 'atheris>=2.3'; then
    printf 'fuzz: atheris cannot be installed here; hypothesis runs instead\n' >&2
    FUZZ_EXAMPLES=${FUZZ_EXAMPLES:-5000} exec .venv/bin/pytest -q tests/fuzz
fi

failed=0
for target in ${FUZZ_TARGETS:-$(.venv/bin/python tests/fuzz/atheris/run.py --list)}; do
    printf 'fuzz: %s for %s s\n' "$target" "$seconds"
    mkdir -p "$work/$target" "tests/fuzz/crashes/$target"
    .venv/bin/python tests/fuzz/atheris/run.py "$target" -max_total_time="$seconds" -max_len=4096 -timeout=20 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="tests/fuzz/crashes/$target/" "$work/$target" "tests/fuzz/crashes/$target" \
        >"$work/$target.log" 2>&1 || failed=1
    grep -E 'ERROR|Error|number_of_executed|Test unit written' "$work/$target.log" || true
    rmdir "tests/fuzz/crashes/$target" 2>/dev/null || true
done
exit "$failed"
