#!/usr/bin/env bash
# Makes this checkout ready to run: virtual environment, package, container engine, sandbox images. Does only what is
# missing. As root on Debian or Ubuntu it installs and starts what it needs; anywhere else each missing thing is one
# line on stderr and the exit code is 1. `--without-engine` stops after the package; `--all-images` also builds the large
# image `data`, which the tests need.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly engine_wait_s=60
readonly run_dir=${SETUP_RUN_DIR:-/run} # elsewhere for the tests of this script
images=(python shell web)
if [ "${1:-}" = --all-images ]; then images+=(data); fi
failed=0
apt_is_fresh=0

say() { printf 'setup: %s\n' "$*"; }
missing() {
    printf 'setup: missing: %s\n' "$*" >&2
    failed=1
}
have() { command -v "$1" >/dev/null 2>&1; }
may_install() { [ "$(id -u)" -eq 0 ] && have apt-get; }

install_packages() {
    say "installing $*"
    if [ "$apt_is_fresh" -eq 0 ]; then
        apt-get update -qq </dev/null || true # an older package list may still do
        apt_is_fresh=1
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null ||
        missing "the packages $*: apt-get could not install them"
}

# --- Python ----------------------------------------------------------------------------------------------------------

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local name
    for name in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
        if is_new_enough "$name"; then
            printf '%s\n' "$name"
            return
        fi
    done
    return 1
}

set_up_environment() {
    local python
    if ! is_new_enough .venv/bin/python; then
        if ! python=$(find_python); then
            if may_install; then install_packages python3 python3-venv; fi
            if ! python=$(find_python); then
                missing "Python 3.11 or newer; install it and make it python3 on the PATH, or name it in PYTHON"
                return
            fi
        fi
        if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
            if may_install; then install_packages python3-venv; fi
            if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
                missing "the venv module of $python; install your distribution's python3-venv"
                return
            fi
        fi
        say "making .venv with $python"
        "$python" -m venv --clear .venv
    fi
    if ! cmp -s pyproject.toml .venv/installed-pyproject.toml; then
        say "installing the package and its development tools"
        .venv/bin/python -m pip install -q --disable-pip-version-check -e '.[dev]' </dev/null
        cp pyproject.toml .venv/installed-pyproject.toml
    fi
}

# --- the container engine --------------------------------------------------------------------------------------------

engine_answers() {
    .venv/bin/python -c 'from toolcage.cage.engine import Engine; Engine.connect().close()' >/dev/null 2>&1
}

wait_for_engine() { # PID
    local waited
    for ((waited = 0; waited < engine_wait_s; waited++)); do
        if engine_answers; then return 0; fi
        kill -0 "$1" 2>/dev/null || return 1
        sleep 1
    done
    return 1
}

install_engine() {
    local packages=(docker.io iptables)
    # An engine on a kernel with AppArmor needs its parser, which is only a recommended package.
    if [ -d /sys/kernel/security/apparmor ]; then packages+=(apparmor); fi
    install_packages "${packages[@]}"
}

start_service() {
    say "starting the docker service"
    if systemctl start docker && engine_answers; then return; fi
    missing "a container engine: the docker service did not start; see journalctl -u docker"
}

start_engine() {
    local log pid
    if pid=$(cat "$run_dir/docker.pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null; then
        wait_for_engine "$pid" || missing "a container engine: dockerd (process $pid) runs and does not answer"
        return
    fi
    log=$(mktemp "${TMPDIR:-/tmp}/toolcage-dockerd.XXXXXX")
    say "starting dockerd, which writes to $log"
    setsid dockerd </dev/null >"$log" 2>&1 &
    pid=$!
    mkdir -p .state
    printf '%s\n' "$pid" >.state/dockerd.pid # what stop_engine.sh may end: this one and no other
    wait_for_engine "$pid" || missing "a container engine: dockerd was started and does not answer; its log is $log"
}

set_up_engine() {
    if engine_answers; then return; fi
    if [ -n "${DOCKER_HOST:-}" ]; then
        missing "a container engine: none answers at DOCKER_HOST=$DOCKER_HOST; start it, or unset DOCKER_HOST"
    elif [ "$(uname -s)" != Linux ]; then
        missing "a container engine: install and start Docker Desktop, colima or another Docker-compatible engine"
    elif [ "$(id -u)" -ne 0 ] && have dockerd; then
        missing "a container engine that you may use: start it (sudo systemctl start docker) and join the group docker"
    elif [ "$(id -u)" -ne 0 ]; then
        missing "a container engine: install Docker (as root on Debian or Ubuntu: apt-get install docker.io) and start it"
    elif ! have dockerd && ! have apt-get; then
        missing "a container engine: install Docker with this system's package manager, then start it"
    else
        if may_install && ! { have dockerd && have iptables; }; then install_engine; fi
        if ! have dockerd; then
            missing "a container engine: dockerd is not installed"
        elif [ -d "$run_dir/systemd/system" ]; then
            start_service
        else
            start_engine
        fi
    fi
}

# --- sandbox images --------------------------------------------------------------------------------------------------

set_up_images() {
    if .venv/bin/toolcage images verify "${images[@]}" >/dev/null 2>&1; then return; fi
    if may_install && ! dpkg-query -W mmdebstrap debian-archive-keyring >/dev/null 2>&1; then
        install_packages mmdebstrap debian-archive-keyring
    fi
    say "building the sandbox images (once; about a minute)"
    .venv/bin/toolcage images build "${images[@]}" </dev/null || missing "the sandbox images: the build failed as shown above"
}

set_up_environment
if [ "${1:-}" != --without-engine ]; then
    if [ -x .venv/bin/python ]; then
        set_up_engine
        if [ "$failed" -eq 0 ]; then set_up_images; fi
    elif ! have docker && ! have dockerd; then
        missing "a container engine: install Docker and start it"
    fi
fi
exit "$failed"
