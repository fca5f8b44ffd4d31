# shellcheck shell=bash
# Sourced by other scripts: keeps all caches in the repository's folder and limits compile jobs. Expects `root`, the
# absolute path of the repository.
export CCACHE_DIR=${CCACHE_DIR:-$root/.cache/ccache}
export CCACHE_BASEDIR=${CCACHE_BASEDIR-$root} CCACHE_NOHASHDIR=1 # equal objects for every build folder
export CCACHE_DEPEND=1 # skips a separate preprocessor run
export PIP_CACHE_DIR=${PIP_CACHE_DIR:-$root/.cache/pip}
export PIP_DISABLE_PIP_VERSION_CHECK=1

if [ -z "${LAMPLIGHTER_JOBS:-}" ]; then
  # A translation unit with Torch headers takes up to 1.4 GB.
  memory_jobs=$(awk '/^MemAvailable:/ { print int($2 / 1500000) }' /proc/meminfo)
  LAMPLIGHTER_JOBS=$(nproc)
  [ "$memory_jobs" -ge "$LAMPLIGHTER_JOBS" ] || LAMPLIGHTER_JOBS=$memory_jobs
  [ "$LAMPLIGHTER_JOBS" -ge 1 ] || LAMPLIGHTER_JOBS=1
fi
export LAMPLIGHTER_JOBS
