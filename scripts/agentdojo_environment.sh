#!/usr/bin/env bash
# Makes .venv-agentdojo: this package and AgentDojo, which brings the clients of many model vendors along and therefore
# stays out of the development environment. Does only what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly environment=.venv-agentdojo
wanted=$(cat pyproject.toml benchmarks/agentdojo/requirements.txt)

if [ -x $environment/bin/python ] && [ "$(cat $environment/installed 2>/dev/null)" = "$wanted" ]; then exit 0; fi
for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
    if "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        "$python" -m venv --clear $environment
        $environment/bin/python -m pip install -q --disable-pip-version-check -r benchmarks/agentdojo/requirements.txt -e .
        printf '%s\n' "$wanted" >$environment/installed
        exit 0
    fi
done
printf 'missing: Python 3.11 or newer with its venv module; install it and make it python3 on the PATH\n' >&2
exit 1
