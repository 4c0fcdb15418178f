# install.sh BUILD ENVIRONMENT: makes the virtual environment of an image from the packages in BUILD/wheels.
set -eu
build=$1
environment=$2
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-input --no-cache-dir \
    --no-index --find-links "$build/wheels" --requirement "$build/requirements.lock"
# The root is read-only later, so what is compiled now is all there ever is; and it must hold whatever times the files get.
# Test data of packages that is no valid Python stays as it is.
python3 -m compileall -q -f --invalidation-mode unchecked-hash "$environment" \
    "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" >/dev/null 2>&1 || true
