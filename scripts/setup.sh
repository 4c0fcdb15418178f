#!/usr/bin/env bash
# Prepares what Clade needs beside Rust: the Python environment of candidate programs and the example tasks.
#
#     eval "$(scripts/setup.sh)"        the last line printed sets CLADE_PYTHON
#     scripts/setup.sh --tests          also the environment of the tests' readers (CLADE_TEST_PYTHON), Chromium, in which
#                                       the tests open reports (CLADE_SKIP_CHROMIUM=1 goes without), and debootstrap, which makes
#                                       the image of the tests on containers (CLADE_SKIP_DOCKER=1 goes without)
#
# Steps that are done already are skipped. CLADE_PYTHON_ENV and CLADE_TEST_PYTHON_ENV choose other folders than .venv and
# .venv-test; PYTHON chooses the interpreter that the environments are made with.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
candidates_env=${CLADE_PYTHON_ENV:-$root/.venv}
tests_env=${CLADE_TEST_PYTHON_ENV:-$root/.venv-test}
with_tests=false

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
    printf 'setup: error: %s\n' "$*" >&2
    exit 1
}

# Installs Debian packages as root; otherwise says how.
need_packages() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing $* (Debian packages)"
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
    else
        fail "missing on this machine: $*. Install it first, for example: sudo apt-get install $*"
    fi
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$name" >/dev/null && new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# The browser of the tests; they look for the same names.
need_chromium() {
    local name
    [ "${CLADE_SKIP_CHROMIUM:-}" != 1 ] || return 0
    for name in chromium chromium-browser google-chrome; do
        ! command -v "$name" >/dev/null || return 0
    done
    say "the tests open reports in Chromium; CLADE_SKIP_CHROMIUM=1 goes without"
    need_packages chromium
}

# The container engine itself is the user's to install and to start; what makes its image is not.
need_docker() {
    [ "${CLADE_SKIP_DOCKER:-}" != 1 ] || return 0
    docker version >/dev/null 2>&1 ||
        fail "the tests on containers need Docker: start its engine, or set CLADE_SKIP_DOCKER=1 to go without"
    command -v debootstrap >/dev/null || need_packages debootstrap
}

# make_env FOLDER LOCK: a virtual environment with exactly the locked packages.
make_env() {
    local folder=$1 lock=$2 sum
    sum=$(sha256sum <"$lock" | cut -d' ' -f1)
    if [ "$(cat "$folder/.clade-lock" 2>/dev/null)" = "$sum" ] && "$folder/bin/python" -c '' 2>/dev/null; then
        say "$folder is up to date"
        return
    fi
    if [ -e "$folder" ] && [ ! -e "$folder/.clade-lock" ] && [ -n "$(ls -A "$folder")" ]; then
        fail "$folder exists and was not made by this script; remove it or choose another folder (see --help)"
    fi
    "$python" -c 'import venv, ensurepip' 2>/dev/null || need_packages python3-venv
    say "making $folder from ${lock#"$root"/}"
    "$python" -m venv --clear "$folder" >&2
    printf 'incomplete\n' >"$folder/.clade-lock"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary :all: -r "$lock" >&2 ||
        fail "pip could not install the packages of $lock; it needs PyPI or a mirror (PIP_INDEX_URL)"
    # Written last: without it the environment is made anew.
    printf '%s\n' "$sum" >"$folder/.clade-lock"
}

make_examples() {
    local script=$root/examples/tasks/build.py task
    for task in breast-cancer diabetes-progression handwritten-digits; do
        if [ ! "$root/examples/tasks/$task/leaderboard.csv" -nt "$script" ]; then
            say "building the example tasks"
            "$candidates_env/bin/python" "$script" >&2
            return
        fi
    done
    say "the example tasks are up to date"
}

for argument in "$@"; do
    case $argument in
    --tests) with_tests=true ;;
    -h | --help)
        sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit
        ;;
    *) fail "unknown argument $argument; the only one is --tests" ;;
    esac
done

command -v cc >/dev/null || need_packages build-essential
python=$(find_python) || fail "no Python 3.11 or newer found; install one (Debian 12: apt-get install python3) or set PYTHON"
say "Python is $python ($("$python" -c 'import platform; print(platform.python_version())'))"
make_env "$candidates_env" "$root/configs/python/requirements.lock"
if $with_tests; then
    make_env "$tests_env" "$root/configs/python/requirements-test.lock"
    need_chromium
    need_docker
fi
make_examples
printf 'export CLADE_PYTHON=%q\n' "$candidates_env/bin/python"
if $with_tests; then
    printf 'export CLADE_TEST_PYTHON=%q\n' "$tests_env/bin/python"
fi
