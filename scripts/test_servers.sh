#!/usr/bin/env bash
# Installs the servers that integration tests talk to, where root may do so on Debian or Ubuntu; names what is missing
# anywhere else. Nothing is started and nothing is left enabled: tests start what they need, in folders of their own.
# `--wiki` stops after MediaWiki, which is what the demo's researcher needs.
set -euo pipefail

packages=(mediawiki php-cli php-cgi php-sqlite3 php-mbstring php-xml php-intl)
if [ "${1:-}" != --wiki ]; then packages+=(postgresql postgresql-client dovecot-imapd); fi

absent=()
for package in "${packages[@]}"; do
    if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then absent+=("$package"); fi
done
if [ "${#absent[@]}" -eq 0 ]; then exit 0; fi

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    printf 'test-servers: missing: %s; install them with this system'\''s package manager\n' "${absent[*]}" >&2
    exit 1
fi

# A package that starts its server while it is being installed would take ports and memory that nobody asked for.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
fi
printf 'test-servers: installing %s\n' "${absent[*]}"
apt-get update -qq </dev/null || true # an older package list may still do
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${absent[@]}" </dev/null >/dev/null
