#!/usr/bin/env bash
# Prepares libtorch 2.11 from PyPI wheels and prints the variable that the build needs.
#
#     eval "$(scripts/setup-torch.sh)"        the last line printed sets LIBTORCH
#
# Where nvidia-smi finds a GPU, the whole wheel with its CUDA libraries is installed (some 5 GB), else only what the CPU needs of it.
# CLADE_TORCH=cpu and CLADE_TORCH=cuda choose. LIBTORCH, where it is set already, is used as it is when it is of the right version.
# PYTHON chooses the interpreter whose pip downloads; it needs PyPI or a mirror (PIP_INDEX_URL).
set -euo pipefail

VERSION=2.11.0
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/clade"
PYTHON=${PYTHON:-python3}

say() { printf 'setup-torch: %s\n' "$*" >&2; }
fail() {
    printf 'setup-torch: error: %s\n' "$*" >&2
    exit 1
}

# The version of the libtorch in a folder: archives have a file for it, wheels and all others a header.
version_in() {
    local header=$1/include/torch/headeronly/version.h
    [ -f "$header" ] || header=$1/include/torch/csrc/api/include/torch/version.h
    if [ -f "$1/build-version" ]; then
        cut -d+ -f1 "$1/build-version"
    elif [ -f "$header" ]; then
        awk '$2 ~ /^TORCH_VERSION_(MAJOR|MINOR|PATCH)$/ { printf "%s%s", dot, $3; dot = "." }' "$header"
    fi
}

# pip tries again by itself when a connection fails at its start, not when it breaks off in a download.
pip() {
    local attempt
    for attempt in 1 2 3; do
        "$PYTHON" -m pip "$@" --quiet --disable-pip-version-check --no-input --only-binary :all: >&2 && return
        [ "$attempt" = 3 ] || say "pip failed, trying again"
        sleep "$attempt"
    done
    fail "pip could not get torch $VERSION; it needs PyPI or a mirror (PIP_INDEX_URL)"
}

# make_cpu WORK: of the wheel only the libraries that the CPU needs.
make_cpu() {
    pip download --no-deps --dest "$1" "torch==$VERSION" 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*'
    local wheel
    for wheel in "$1"/*.whl; do
        "$PYTHON" -m zipfile -e "$wheel" "$1/wheels"
        rm "$wheel"
    done
    mkdir -p "$1/made/lib"
    mv "$1/wheels/torch/include" "$1/made/include"
    mv "$1"/wheels/torch/lib/{libtorch_cpu.so,libc10.so,libgomp.so.1} "$1/made/lib/"
    # libtorch_cpu is linked against these two, which work without a driver.
    mv "$1"/wheels/nvidia/cu13/lib/{libcudart.so.13,libcupti.so.13} "$1/made/lib/"
    echo 'INPUT(-ltorch_cpu)' >"$1/made/lib/libtorch.so"
}

# make_cuda WORK: the whole wheel beside those of its CUDA libraries, where it looks for them.
make_cuda() {
    pip install --target "$1/made" "torch==$VERSION"
    [ -f "$1/made/torch/lib/libtorch_cuda.so" ] || fail "the wheel of torch $VERSION that pip chose has no CUDA"
}

case ${1:-} in
'') ;;
-h | --help)
    sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit
    ;;
*) fail "unknown argument $1; there is none" ;;
esac

if [ -n "${LIBTORCH:-}" ]; then
    found=$(version_in "$LIBTORCH")
    [ -n "$found" ] || fail "LIBTORCH is $LIBTORCH, where no libtorch is; unset it and one is downloaded"
    [ "${found%.*}" = "${VERSION%.*}" ] ||
        fail "LIBTORCH is $LIBTORCH, which is libtorch $found; ${VERSION%.*} is needed. Unset it and one is downloaded"
    printf 'export LIBTORCH=%q\n' "$LIBTORCH"
    exit
fi

kind=${CLADE_TORCH:-}
case $kind in
cpu | cuda) ;;
'') if nvidia-smi >/dev/null 2>&1; then kind=cuda; else kind=cpu; fi ;;
*) fail "CLADE_TORCH is '$kind'; it is cpu or cuda" ;;
esac

target=$CACHE/libtorch-$VERSION-$kind
mkdir -p "$CACHE"
# One run at a time: what another one left unfinished is then of a run that was killed.
exec 9>"$CACHE/libtorch.lock"
flock 9
rm -rf "$CACHE"/libtorch.work.*
if [ -f "$target/complete" ]; then
    say "$target is up to date"
else
    say "downloading libtorch $VERSION for $kind"
    work=$(mktemp -d "$CACHE/libtorch.work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    "make_$kind" "$work"
    touch "$work/made/complete"
    rm -rf "$target"
    # In one step: a folder of this name is always whole.
    mv "$work/made" "$target"
fi
if [ "$kind" = cuda ]; then target=$target/torch; fi
printf 'export LIBTORCH=%q\n' "$target"
