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
