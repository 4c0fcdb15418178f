#!/usr/bin/env bash
# Prepares libtorch 2.11 from PyPI wheels and prints the variable that the build needs. CPU by default: of the CUDA wheel only the
# libraries that the CPU needs are kept. LIBTORCH, where it is set already, is used as it is.
set -euo pipefail

VERSION=2.11.0
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/clade"

if [ -n "${LIBTORCH:-}" ]; then
    echo "export LIBTORCH=$LIBTORCH"
    exit
fi

target="$CACHE/libtorch-$VERSION-cpu"
if [ ! -f "$target/complete" ]; then
    work="$(mktemp -d "$CACHE/libtorch.XXXXXX")"
    trap 'rm -rf "$work"' EXIT
    python3 -m pip download --quiet --no-deps --dest "$work" "torch==$VERSION" \
        'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*' >&2
    for wheel in "$work"/*.whl; do
        python3 -m zipfile -e "$wheel" "$work/wheels"
        rm "$wheel"
    done
    mkdir -p "$work/made/lib"
    mv "$work/wheels/torch/include" "$work/made/include"
    mv "$work"/wheels/torch/lib/{libtorch_cpu.so,libc10.so,libgomp.so.1} "$work/made/lib/"
    # libtorch_cpu is linked against these two, which work without a driver.
    mv "$work"/wheels/nvidia/cu13/lib/{libcudart.so.13,libcupti.so.13} "$work/made/lib/"
    echo 'INPUT(-ltorch_cpu)' >"$work/made/lib/libtorch.so"
    touch "$work/made/complete"
    rm -rf "$target"
    mv "$work/made" "$target"
fi
echo "export LIBTORCH=$target"
