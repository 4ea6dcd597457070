#!/usr/bin/env bash
# Stops the engine that scripts/setup.sh started from this checkout, and no other: the recorded process, and only while
# it is still a dockerd.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pid=$(cat .state/dockerd.pid 2>/dev/null) || exit 0
if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ]; then
    kill "$pid"
    for _ in $(seq 30); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 1
    done
fi
rm -f .state/dockerd.pid
