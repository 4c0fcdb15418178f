#!/usr/bin/env bash
# The same budget of sandbox time for several policies: every task, policy and seed is one search with the evolver.
#
#     benches/ablation.sh TASKS_FOLDER STORE [SECONDS]     CLADE names the binary (default: clade)
#
# A policy is a view, so the whole comparison is SQL: the searches are EVOLVE statements, the table is benches/ablation.sql.
# A store that holds some of the searches already is gone on with.
set -euo pipefail

tasks=${1:?usage: benches/ablation.sh TASKS_FOLDER STORE [SECONDS]}
export CLADE_STORE=${2:?usage: benches/ablation.sh TASKS_FOLDER STORE [SECONDS]}
seconds=${3:-60}
clade=${CLADE:-clade}
read -ra names <<<"${TASKS:-abalone-age ames-sale-price loan-interest-rate movie-topn solar-flare-counts spanish-credit-risk}"
read -ra policies <<<"${POLICIES:-openmle_evo aira_evo best_of_n uniform}"
read -ra seeds <<<"${SEEDS:-1 2 3}"
here=$(dirname "$0")

[ -e "$CLADE_STORE/store.toml" ] || "$clade" init
for task in "${names[@]}"; do
    known=$("$clade" sql --format csv -c "SELECT count(*) FROM gym.tasks WHERE task_id = '$task'" | tail -1)
    [ "$known" != 0 ] || "$clade" task add "$tasks/$task"
done
failed=()
# Seed by seed, so that a comparison that is broken off is one of fewer seeds and not of fewer policies.
for seed in "${seeds[@]}"; do
    for task in "${names[@]}"; do
        for policy in "${policies[@]}"; do
            run="$task.$policy.$seed"
            status=$("$clade" sql --format csv -c "SELECT coalesce(max(status), 'none') FROM evo.runs WHERE run_id = '$run'" | tail -1)
            case "$status" in
            finished) continue ;;
            none) sql="EVOLVE TASK '$task' WITH POLICY $policy USING MODEL evolver WITH (steps => 100000, workers => ${WORKERS:-1}, seed => $seed, max_sandbox => '$seconds s', id => '$run')" ;;
            *) sql="RESUME RUN '$run'" ;;
            esac
            "$clade" sql -c "$sql" >/dev/null || failed+=("$run")
        done
    done
done
"$clade" sql -f "$here/ablation.sql"
[ ${#failed[@]} = 0 ] || { printf 'these runs failed: %s\n' "${failed[*]}" >&2; exit 1; }
