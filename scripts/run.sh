#!/usr/bin/env bash
# Sets up what is missing, then runs the program: scripts/run.sh generate -p "a lighthouse at dusk" -o out.png
set -euo pipefail
[ -e /dev/fd/2 ] || exec 2>/dev/null # a parent may close it; setup writes there
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LAMPLIGHTER_TARGET=lamplighter_cli "$root/scripts/setup.sh"
exec "$root/build/lamplighter" "$@"
