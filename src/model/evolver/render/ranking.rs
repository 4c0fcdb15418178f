//! Programs that rank items for users by a weighted sum of scorers.

use super::data;
use super::script::Script;
use crate::model::evolver::genome::{Genome, RankingGenome, ScorerKind};
use crate::model::evolver::literal::quote;
use crate::model::evolver::plan::enumerate;
use crate::model::evolver::profile::{Ranking, SAMPLE, TEST, TRAIN, TaskProfile};

/// The program of a ranking genome.
pub(crate) fn program(genome: &Genome, scorers: &RankingGenome, ranking: &Ranking, profile: &TaskProfile) -> String {
    let mut script = Script::default();
    let kinds: Vec<_> = scorers
        .scorers
        .0
        .iter()
        .filter_map(|(name, _)| ScorerKind::from_name(name))
        .collect();
    data::settings(&mut script, genome, profile);
    script.line(format!("ITEM = {}", quote(&ranking.item)));
    script.line(format!("LIST = {}", quote(&ranking.column)));
    script.line(format!("TOP = {}", ranking.length));
    script.line(format!("HELD_BACK = {}", ranking.held_back));
    script.line("SCORERS = CONFIG[\"scorers\"]");
    script.section("Data");
    script.line(format!("train = {}", data::read(profile, TRAIN)));
    script.line(format!("test = {}", data::read(profile, TEST)));
    script.line(format!("sample = {}", data::read(profile, SAMPLE)));
    if let Some(time) = &ranking.time {
        script.line(format!(
            "train = train.sort_values([ID, {}], kind=\"stable\", ignore_index=True)",
            quote(time)
        ));
    }
    script.line("users, user_codes = np.unique(train[ID], return_inverse=True)");
    script.line("items, item_codes = np.unique(train[ITEM], return_inverse=True)");
    if let (Some(time), true) = (&ranking.time, kinds.contains(&ScorerKind::Popular)) {
        script.line(format!("clock = train[{}].to_numpy(float)", quote(time)));
    }
    if kinds.iter().any(|kind| *kind != ScorerKind::Popular) {
        profiles(&mut script);
    }
    script.section("Scorers");
    script.line(
        "# A scorer takes the row numbers of a history, sorted by user and time, and scores all items for all users.",
    );
    for kind in &kinds {
        script.function(scorer(*kind, ranking.time.is_some()));
        if *kind == ScorerKind::Svd {
            script.from("scipy.sparse.linalg", "svds");
        }
    }
    let builders: Vec<_> = kinds.iter().map(|kind| format!("\"{0}\": {0}", kind.name())).collect();
    script.line(format!("FUNCTIONS = {{{}}}", builders.join(", ")));
    recommend(&mut script);
    script.section("Validation");
    let body = profile.metric.body(&profile.outcome);
    script.function(format!(
        "def metric(truth, prediction):\n    \"\"\"Mean average precision of the lists.\"\"\"\n{body}"
    ));
    script.line("from_end = train.groupby(ID).cumcount(ascending=False).to_numpy()");
    script.line("counts = np.bincount(user_codes)");
    script.line("# Short histories stay whole, so that every user that is scored has a history to score from.");
    script.line("late = (from_end < HELD_BACK) & (counts[user_codes] > 2 * HELD_BACK)");
    script.line("lists = recommend(np.flatnonzero(~late))");
    script.line("wanted = train[late].groupby(user_codes[late])[ITEM].agg(list)");
    script.line("score = metric(list(wanted), [lists[user] for user in wanted.index])");
    script.line("print(f\"Final Validation Score: {score:.6f}\")");
    script.section("Submission");
    script.line("lists = dict(zip(users, recommend(np.arange(len(train)))))");
    script.line("popular = items[np.argsort(-np.bincount(item_codes), kind=\"stable\")[:TOP]]");
    script.line("submission = sample[[ID]].copy()");
    script.line("submission[LIST] = [\" \".join(map(str, lists.get(user, popular))) for user in submission[ID]]");
    script.line("submission.to_csv(\"submission.csv\", index=False)");
    let names: Vec<_> = kinds.iter().map(|kind| kind.words()).collect();
    script.finish(&format!(
        "{}: {} items for each user by {}.",
        profile.task_id,
        ranking.length,
        enumerate(&names)
    ))
}

fn profiles(script: &mut Script) {
    script.from("scipy.sparse", "csr_matrix");
    script.section("Histories");
    script.function(
        "def histories(rows):\n    \"\"\"Users by items, 1 where the user chose the item.\"\"\"\n    \
         values = np.ones(len(rows), dtype=np.float32)\n    \
         return csr_matrix((values, (user_codes[rows], item_codes[rows])), shape=(len(users), len(items)))",
    );
    script.function(
        "def latest(rows, recent, decay):\n    \"\"\"Users by items: the newest choice counts 1, each older one decay times less.\"\"\"\n    \
         age = pd.Series(user_codes[rows]).groupby(user_codes[rows]).cumcount(ascending=False).to_numpy()\n    \
         kept = age < recent\n    values = (decay ** age[kept]).astype(np.float32)\n    chosen = rows[kept]\n    \
         return csr_matrix((values, (user_codes[chosen], item_codes[chosen])), shape=(len(users), len(items)))",
    );
    script.function(
        "def damped(counts, damping):\n    \"\"\"Factors that keep popular items from crowding out the others.\"\"\"\n    \
         return (1.0 / np.maximum(counts, 1.0) ** damping).astype(np.float32)",
    );
}

fn scorer(kind: ScorerKind, timed: bool) -> String {
    match (kind, timed) {
        (ScorerKind::Popular, true) => "def popular(rows, half_life):\n    \"\"\"Choices, the late ones counted more; half_life is a share of the whole time.\"\"\"\n    \
             age = (clock[rows].max() - clock[rows]) / np.ptp(clock[rows])\n    \
             counts = np.bincount(item_codes[rows], 0.5 ** (age / half_life), minlength=len(items))\n    \
             return np.tile(counts.astype(np.float32), (len(users), 1))".to_owned(),
        (ScorerKind::Popular, false) => "def popular(rows):\n    \"\"\"Number of choices.\"\"\"\n    \
             counts = np.bincount(item_codes[rows], minlength=len(items))\n    \
             return np.tile(counts.astype(np.float32), (len(users), 1))".to_owned(),
        (ScorerKind::ItemCosine, _) => "def item_cosine(rows, recent, decay, damping):\n    \"\"\"Items chosen by the same users as the latest items.\"\"\"\n    \
             chosen = histories(rows)\n    factors = damped(np.asarray(chosen.sum(axis=0)).ravel(), damping)\n    \
             alike = latest(rows, recent, decay).multiply(factors).tocsr() @ chosen.T\n    \
             return (alike @ chosen).toarray() * factors".to_owned(),
        (ScorerKind::NextItem, _) => "def next_item(rows, recent, decay, damping, window):\n    \"\"\"Items that others chose within a few choices after the latest items.\"\"\"\n    \
             steps = csr_matrix((len(items), len(items)), dtype=np.float32)\n    for gap in range(1, window + 1):\n        \
             before, after = rows[:-gap], rows[gap:]\n        same = user_codes[before] == user_codes[after]\n        \
             pair = (item_codes[before[same]], item_codes[after[same]])\n        \
             values = np.full(same.sum(), 1.0 / gap, dtype=np.float32)\n        \
             steps = steps + csr_matrix((values, pair), shape=steps.shape)\n    \
             factors = damped(np.bincount(item_codes[rows], minlength=len(items)), damping)\n    \
             return (latest(rows, recent, decay).multiply(factors).tocsr() @ steps).toarray() * factors".to_owned(),
        (ScorerKind::Svd, _) => "def svd(rows, recent, decay, damping, rank):\n    \"\"\"Items near the latest items in the leading directions of the history.\"\"\"\n    \
             chosen = histories(rows)\n    factors = damped(np.asarray(chosen.sum(axis=0)).ravel(), damping)\n    \
             rank = min(rank, min(chosen.shape) - 1)\n    \
             _, _, directions = svds(chosen.multiply(factors).tocsr(), k=rank, random_state=0)\n    \
             return (latest(rows, recent, decay) @ directions.T) @ directions".to_owned(),
        (ScorerKind::Ease, _) => "def ease(rows, recent, decay, l2, items):\n    \"\"\"Each of the most chosen items as a ridge regression on the others.\"\"\"\n    \
             chosen = histories(rows)\n    counts = np.asarray(chosen.sum(axis=0)).ravel()\n    \
             kept = np.argsort(-counts, kind=\"stable\")[:items]\n    \
             gram = (chosen[:, kept].T @ chosen[:, kept]).toarray() + l2 * np.eye(len(kept), dtype=np.float32)\n    \
             inverse = np.linalg.inv(gram)\n    influence = -inverse / np.diag(inverse)\n    np.fill_diagonal(influence, 0.0)\n    \
             scores = np.zeros(chosen.shape, dtype=np.float32)\n    \
             scores[:, kept] = latest(rows, recent, decay)[:, kept] @ influence\n    return scores".to_owned(),
    }
}

fn recommend(script: &mut Script) {
    script.function(
        "def recommend(rows):\n    \"\"\"The best new items of every user, given a history.\"\"\"\n    \
         total = np.zeros((len(users), len(items)), dtype=np.float32)\n    for name, scorer in SCORERS.items():\n        \
         scores = FUNCTIONS[name](rows, **scorer[\"params\"])\n        \
         scale = np.maximum(scores.max(axis=1, keepdims=True), 1e-9)\n        \
         total += scorer[\"weight\"] * scores / scale\n    \
         total[user_codes[rows], item_codes[rows]] = -np.inf\n    \
         best = np.argpartition(-total, TOP, axis=1)[:, :TOP]\n    \
         order = np.argsort(-np.take_along_axis(total, best, axis=1), axis=1, kind=\"stable\")\n    \
         return items[np.take_along_axis(best, order, axis=1)]",
    );
}
