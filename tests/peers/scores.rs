//! Scores: what counts as one, which is best, and whose program it was.

use super::bed::{Bed, NativeBed, Reply, failing, scored, submits};
use crate::engine::fixture::{number, rows, session, table, texts};

fn evolve(steps: usize) -> String {
    format!("EVOLVE TASK 'toy' WITH (steps => {steps}, workers => 1, seed => 1, id => 'r')")
}

/// OpenRSI's tests and ShinkaEvolve's changelog: a score of zero was taken for none, and negative ones were cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zero_and_negative_scores_can_be_the_best() {
    for (scores, best) in [([-3.0, 0.0, -1.0], 2), ([-3.0, -2.0, -1.0], 3), ([0.0, -0.5, -1.0], 1)] {
        let bed = Bed::new(scores.iter().enumerate().map(|(number, score)| scored(number, *score)));
        let engine = bed.create().await;
        let client = session(&engine);
        rows(&client, &evolve(3)).await.unwrap();
        let run = table(&client, "SELECT best_step, best_score FROM evo.runs").await;
        let found = format!(
            "SELECT count(*) FROM evo.runs r JOIN evo.best b ON b.run_id = r.run_id
                             WHERE r.best_step = {best} AND b.step = {best} AND b.node_id = r.final_node_id"
        );
        assert_eq!(number(&client, &found).await, 1, "{scores:?}: {run}");
        assert_eq!(
            number(&client, "SELECT count(*) FROM evo.nodes WHERE NOT is_buggy").await,
            3
        );
    }
}

/// ScienceAgentBench #9: a tie was broken among all trajectories, not among the tied ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_equal_scores_the_earliest_is_the_best() {
    let scores = [0.25, 0.5, 0.5, 0.125, 0.5];
    let bed = Bed::new(scores.iter().enumerate().map(|(number, score)| scored(number, *score)));
    let engine = bed.create().await;
    let client = session(&engine);
    rows(&client, &evolve(5)).await.unwrap();
    let best = "SELECT count(*) FROM evo.runs r JOIN evo.best b ON b.run_id = r.run_id
                WHERE r.best_step = 2 AND b.step = 2 AND b.node_id = r.best_node_id AND r.final_node_id = r.best_node_id";
    assert_eq!(
        number(&client, best).await,
        1,
        "{}",
        table(&client, "SELECT * FROM evo.best").await
    );
}

/// ShinkaEvolve #38 and PR #191: without a success yet, sums stayed at minus infinity and weights became NaN.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_bear_failures_alone() {
    let list = Bed::new([Reply::Seeded]);
    let client = session(&list.create().await);
    for policy in texts(&client, "SELECT name FROM system.policies").await {
        for successes in [0, 1] {
            let mut replies: Vec<Reply> = (0..7).map(failing).collect();
            replies.extend((0..successes).map(|_| scored(7, 0.5)));
            let steps = replies.len();
            let bed = Bed::new(replies);
            let client = session(&bed.create().await);
            let sql = evolve(steps).replace("'toy'", &format!("'toy' WITH POLICY {policy}"));
            rows(&client, &sql).await.unwrap();
            let run = table(&client, "SELECT status, stop_reason, error FROM evo.runs").await;
            let ended =
                "SELECT count(*) FROM evo.runs WHERE status = 'finished' AND stop_reason = 'steps' AND error IS NULL";
            assert_eq!(number(&client, ended).await, 1, "{policy}: {run}");
            // The first success after them is the best, and has no gain over anything.
            let best = "SELECT count(*) FROM evo.runs r JOIN evo.nodes n ON n.node_id = r.best_node_id
                        WHERE n.step = 8 AND n.delta_vs_parent IS NULL";
            assert_eq!(number(&client, best).await, successes, "{policy}");
        }
    }
}

/// OpenRSI: programs printed scores that they did not have, and selection went by what they printed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_boasts_is_not_the_best() {
    let bed = NativeBed::new([
        submits(0.75, "print('Final Validation Score: 0.75')"),
        submits(0.25, "print('Final Validation Score: 99.0')"),
    ]);
    let engine = bed.bed.create().await;
    let client = session(&engine);
    rows(&client, &evolve(2)).await.unwrap();
    let boast = "SELECT count(*) FROM evo.nodes
                 WHERE step = 2 AND score = 0.25 AND self_reported_score = 99.0 AND score_source = 'evaluator'";
    assert_eq!(
        number(&client, boast).await,
        1,
        "{}",
        table(&client, "SELECT step, score, self_reported_score FROM evo.nodes").await
    );
    let best = "SELECT count(*) FROM evo.runs r JOIN evo.nodes n ON n.node_id = r.final_node_id WHERE r.best_step = 1 AND n.step = 1";
    assert_eq!(number(&client, best).await, 1);
    drop(client);
    bed.finish(engine).await;
}

/// OpenEvolve #402 and PR #404: with several files the evaluator ran the first program again and again, and no score changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ran_is_the_program_of_its_node() {
    let programs = (1..=4).map(|number| submits(f64::from(number) / 8.0, &format!("print('program {number}')")));
    let bed = NativeBed::new(programs);
    let engine = bed.bed.create().await;
    let client = session(&engine);
    rows(&client, &evolve(4)).await.unwrap();
    let same = "SELECT count(*) FROM evo.nodes n JOIN sandbox.jobs j ON j.job_id = n.job_id
                WHERE j.code_hash = n.code_hash AND j.code_hash = encode(sha256(n.code), 'hex')
                  AND strpos(n.code, replace(j.stdout_head, chr(10), '')) > 0 AND n.score = n.step / 8.0";
    assert_eq!(
        number(&client, same).await,
        4,
        "{}",
        table(&client, "SELECT step, score, code FROM evo.nodes").await
    );
    drop(client);
    bed.finish(engine).await;
}

/// Equal programs are evaluated once: OpenEvolve #439 looked for novelty only after the dear evaluation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_was_run_before_is_not_run_again() {
    let bed = Bed::new([scored(0, 0.5)]);
    let engine = bed.create().await;
    let client = session(&engine);
    rows(&client, &evolve(4)).await.unwrap();
    let jobs = "SELECT count(*) FROM sandbox.jobs WHERE split = 'validation'";
    assert_eq!(number(&client, jobs).await, 1);
    let spent = "SELECT CAST(spent AS BIGINT) FROM system.budgets WHERE resource = 'jobs'";
    assert_eq!(number(&client, spent).await, 1);
    let taken_over = "SELECT count(*) FROM evo.nodes n JOIN evo.nodes f ON f.node_id = n.duplicate_of
                      WHERE f.step = 1 AND n.step > 1 AND n.score = f.score AND n.job_id IS NULL";
    assert_eq!(number(&client, taken_over).await, 3);
}
