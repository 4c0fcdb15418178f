//! Islands: where children live, and how a policy chooses among islands.

use super::bed::{Bed, Reply};
use crate::engine::fixture::{number, rows, run_session, session, table};

const EVOLVE: &str = "EVOLVE TASK 'toy' WITH (steps => 48, workers => 3, seed => 2, islands => 3, id => 'r')";

/// OpenEvolve #391, #441, #289 and #222: of three islands all children landed on the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_live_on_the_island_of_their_parent() {
    let bed = Bed::new([Reply::Seeded]);
    let engine = bed.create().await;
    let client = session(&engine);
    rows(&client, EVOLVE).await.unwrap();
    let strayed =
        "SELECT count(*) FROM evo.nodes n JOIN evo.nodes p ON p.node_id = n.parent_id WHERE n.island <> p.island";
    assert_eq!(number(&client, strayed).await, 0);
    let grown = "SELECT count(*) FROM (SELECT island FROM evo.nodes WHERE parent_id IS NOT NULL GROUP BY 1 HAVING count(*) > 2)";
    let islands = table(
        &client,
        "SELECT island, operator, count(*) FROM evo.nodes GROUP BY 1, 2 ORDER BY 1, 2",
    )
    .await;
    assert_eq!(number(&client, grown).await, 3, "{islands}");
}

/// OpenEvolve #40 and #138: the sampling of parents did not look at islands at all. A policy is a view, so a query shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_island_has_no_more_weight_than_a_small_one() {
    let bed = Bed::new([Reply::Seeded]);
    let engine = bed.create().await;
    rows(&session(&engine), EVOLVE).await.unwrap();
    let client = run_session(&engine, "r");
    let weights = "SELECT n.island, count(*) AS parents, round(sum(p.weight), 9) AS weight FROM policies.openmle_evo p
                   JOIN evo.nodes n ON n.node_id = p.parent_id WHERE p.operator = 'improve' GROUP BY 1";
    let shown = table(&client, weights).await;
    let equal = format!("SELECT count(*) FROM ({weights}) WHERE weight = 1");
    assert_eq!(number(&client, &equal).await, 3, "{shown}");
    let sizes = format!("SELECT count(DISTINCT parents) FROM ({weights})");
    assert!(number(&client, &sizes).await > 1, "the islands are alike: {shown}");
}

/// OpenEvolve #222 and its kin: migration moved copies whose children stayed where they came from. A visitor's children live on the
/// island that it visits, and both parents of a crossover are from the child's island or visit it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_best_nodes_visit_the_next_island() {
    let bed = Bed::new([Reply::Seeded]);
    let engine = bed.create().await;
    let client = session(&engine);
    rows(
        &client,
        "EVOLVE TASK 'toy' WITH (steps => 90, workers => 3, seed => 2, islands => 3, generation_size => 6, migration_interval => 2,
         migration_size => 2, id => 'r')",
    )
    .await
    .unwrap();
    let strayed = "SELECT n.island, p.island AS home, n.operator, count(*) AS children FROM evo.nodes n
                   JOIN evo.edges e ON e.child_id = n.node_id JOIN evo.nodes p ON p.node_id = e.parent_id
                   WHERE n.island <> p.island GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
    let shown = table(&client, strayed).await;
    let from_elsewhere = format!("SELECT count(*) FROM ({strayed}) WHERE (home + 1) % 3 <> island");
    assert_eq!(number(&client, &from_elsewhere).await, 0, "{shown}");
    for operator in ["improve", "crossover"] {
        let visits = format!("SELECT count(DISTINCT island) FROM ({strayed}) WHERE operator = '{operator}'");
        assert_eq!(number(&client, &visits).await, 3, "{shown}");
    }
    let of_run = run_session(&engine, "r");
    let visitors = table(
        &of_run,
        "SELECT p.island, count(*) AS visitors, bool_and(p.admitted) AS admitted, max(p.step) <= 84 AS before_the_last_migration
         FROM run.island_pool p WHERE p.is_visitor GROUP BY 1 ORDER BY 1",
    )
    .await;
    insta::assert_snapshot!(visitors);
    let trace =
        "SELECT count(*) FROM run.selection_trace t WHERE t.is_taken AND t.parent_id IS NOT NULL AND NOT EXISTS (
                 SELECT 1 FROM evo.edges e WHERE e.child_id = t.node_id AND e.parent_id = t.parent_id)";
    assert_eq!(number(&of_run, trace).await, 0);
}
