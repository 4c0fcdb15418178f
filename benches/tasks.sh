#!/usr/bin/env bash
# Searches every task package of a folder with the evolver and prints how each did.
#
#     benches/tasks.sh TASKS_FOLDER [STORE] [OPTIONS OF clade evolve]     CLADE names the binary (default: clade)
#
# A store that holds some of the searches already is gone on with: a task with a finished run is passed over.
set -euo pipefail

tasks=${1:?usage: benches/tasks.sh TASKS_FOLDER [STORE]}
export CLADE_STORE=${2:-$(mktemp -d)/store}
clade=${CLADE:-clade}
shift $(($# < 2 ? $# : 2))
[ -e "$CLADE_STORE/store.toml" ] || "$clade" init

failed=()
for package in "$tasks"/*/; do
    task=$(basename "$package")
    known=$("$clade" sql --format csv -c "SELECT count(*) FROM gym.tasks WHERE task_id = '$task'" | tail -1)
    [ "$known" != 0 ] || "$clade" task add "$package"
    ended=$("$clade" sql --format csv -c "SELECT count(*) FROM evo.runs WHERE task_id = '$task' AND status = 'finished'" | tail -1)
    [ "$ended" = 0 ] || continue
    "$clade" evolve "$task" --model evolver --steps 40 --workers 2 --seed 1 "$@" || failed+=("$task")
done

"$clade" sql -f "$(dirname "$0")/tasks.sql"
[ ${#failed[@]} = 0 ] || { printf 'these runs failed: %s\n' "${failed[*]}" >&2; exit 1; }
