//! The client against a service that misbehaves: each fault is an error of its own, with its class and what came of it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clade::error::ErrorClass;
use clade::model::{
    GenerateRequest, Generator, Message, ModelError, ModelOptions, OpenAi, ReplyFault, Role, Sample, SamplingParams,
    TaskContext,
};
use clade::operators::Operator;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::counts;
use super::server::{self, Act, Server, answer, error, good, message, pieces};

fn model(endpoint: &str, more: Json) -> OpenAi {
    let mut options = json!({"provider": "openai", "endpoint": endpoint, "model": "org/model-7b"});
    options
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap_or_default());
    OpenAi::new("remote", &ModelOptions::from_json(&options.to_string()).unwrap()).unwrap()
}

fn request() -> GenerateRequest {
    let message = |role, content: &str| Message {
        role,
        content: content.to_owned(),
    };
    GenerateRequest {
        operator: Operator::Draft,
        messages: vec![
            message(Role::System, &"You write programs. ".repeat(40)),
            message(Role::User, "Write one."),
        ],
        task: Arc::new(TaskContext {
            task_id: "t".to_owned(),
            public_dir: PathBuf::new(),
            description: String::new(),
            metric: "r2".to_owned(),
            higher_is_better: true,
            modality: "tabular".to_owned(),
            task_type: "regression".to_owned(),
            id_column: None,
            target_columns: Vec::new(),
            time_limit_seconds: 60,
        }),
        nodes: Vec::new(),
        params: SamplingParams {
            temperature: 0.5,
            top_p: 0.9,
            max_tokens: 256,
        },
        seed: 12,
        sample: 0,
        time_limit: None,
        attempt_key: String::new(),
        request_hash: String::new(),
    }
}

async fn ask(model: &OpenAi) -> Result<Sample, ModelError> {
    model.generate(&request(), &CancellationToken::new()).await
}

/// What a model makes of one answer, whole or as a stream.
async fn outcome(act: Act, more: Json) -> Result<Sample, ModelError> {
    let server = Server::start(move |_, _| act.clone()).await;
    ask(&model(&server.endpoint, more)).await
}

async fn fault(act: Act, more: Json) -> (ReplyFault, Sample) {
    match outcome(act, more).await {
        Err(ModelError::Reply { fault, sample, .. }) => (fault, *sample),
        other => panic!("no faulty reply: {other:?}"),
    }
}

#[tokio::test]
async fn a_stream_and_a_whole_answer_are_the_same() {
    let server = Server::start(|_, request| good(request)).await;
    let price = json!({"usd_per_million_prompt_tokens": 1.0, "usd_per_million_completion_tokens": 2.0});
    let with = |stream: bool| {
        let mut more = price.clone();
        more["stream"] = stream.into();
        model(&server.endpoint, more)
    };
    let streamed = ask(&with(true)).await.unwrap();
    let whole = ask(&with(false)).await.unwrap();
    assert_eq!(streamed.text, whole.text);
    assert!(streamed.text.contains("```python"));
    for sample in [&streamed, &whole] {
        assert_eq!((sample.tokens_prompt, sample.tokens_completion), (Some(700), Some(50)));
        assert_eq!(sample.cost_usd, Some(800.0 / 1e6));
        assert_eq!(
            (sample.finish_reason.as_str(), sample.usage.problem.as_deref()),
            ("stop", None)
        );
    }
    let requests = server.received();
    assert_eq!(requests[0].body["stream_options"], json!({"include_usage": true}));
    assert_eq!(
        requests[1].body,
        json!({
            "model": "org/model-7b", "max_tokens": 256, "temperature": 0.5, "top_p": 0.9, "seed": 12, "stream": false,
            "messages": [{"role": "system", "content": "You write programs. ".repeat(40)}, {"role": "user", "content": "Write one."}],
        })
    );
    assert!(requests[0].head.starts_with("POST /v1/chat/completions HTTP/1.1"));
    assert!(!requests[0].head.to_lowercase().contains("authorization"));
}

#[tokio::test]
async fn a_stream_that_is_cut_is_an_error_that_keeps_its_text() {
    for act in [
        Act::Cut(pieces(&["A plan.\n", "```python\nscore = "], false)),
        Act::Stream(pieces(&["A plan.\n", "```python\nscore = "], false), Duration::ZERO),
    ] {
        let (fault, sample) = fault(act, json!({})).await;
        assert!(matches!(fault, ReplyFault::Cut { bytes: 26, .. }), "{fault:?}");
        assert_eq!(fault.class(), ErrorClass::Provider);
        assert_eq!(sample.text, "A plan.\n```python\nscore = ");
        assert_eq!((sample.tokens_prompt, sample.cost_usd), (None, None));
        assert!(sample.usage.estimated_prompt.is_some());
    }
}

#[tokio::test]
async fn a_stream_that_ends_after_its_finish_reason_is_whole() {
    let mut whole = pieces(&["text"], true);
    whole.truncate(2);
    let sample = outcome(Act::Cut(whole), json!({})).await.unwrap();
    assert_eq!((sample.text.as_str(), sample.tokens_prompt), ("text", None));
}

#[tokio::test]
async fn a_stream_is_known_by_its_look_too() {
    for kind in ["text/plain", "application/json"] {
        let events: Vec<String> = pieces(&["te", "xt"], true)
            .iter()
            .map(|piece| format!("data: {piece}\n\n"))
            .collect();
        let act = |count: usize| Act::Answer(200, vec![("Content-Type", kind.into())], events[..count].concat());
        let sample = outcome(act(5), json!({})).await.unwrap();
        assert_eq!((sample.text.as_str(), sample.tokens_prompt), ("text", Some(700)));
        let (fault, sample) = fault(act(1), json!({})).await;
        assert!(matches!(fault, ReplyFault::Cut { bytes: 2, .. }), "{fault:?}");
        assert_eq!(sample.text, "te");
    }
}

#[tokio::test]
async fn time_limits_are_in_seconds_and_say_which_one_it_was() {
    let slow = json!({"first_byte_timeout_seconds": 0.2, "idle_timeout_seconds": 0.2, "timeout_seconds": 30});
    for (act, more, setting, text) in [
        (Act::Hang, slow.clone(), "first_byte_timeout_seconds", ""),
        (Act::Stall(Vec::new()), slow.clone(), "first_byte_timeout_seconds", ""),
        (
            Act::Stall(pieces(&["half"], false)),
            slow,
            "idle_timeout_seconds",
            "half",
        ),
        (
            Act::Stream(pieces(&["d", "r", "i", "p"], true), Duration::from_millis(150)),
            json!({"timeout_seconds": 0.4}),
            "timeout_seconds",
            "d",
        ),
    ] {
        let (fault, sample) = fault(act, more).await;
        let ReplyFault::Stalled { setting: found, .. } = fault else {
            panic!("{fault:?}")
        };
        assert_eq!((found, fault.class()), (setting, ErrorClass::Provider));
        assert!(fault.to_string().contains(setting), "{fault}");
        assert!(sample.text.starts_with(text), "{}", sample.text);
    }
    let drip = Act::Stream(pieces(&["d", "r", "i", "p"], true), Duration::from_millis(50));
    let patient = json!({"first_byte_timeout_seconds": 30, "idle_timeout_seconds": 30, "timeout_seconds": 30});
    assert_eq!(outcome(drip, patient).await.unwrap().text, "drip");
}

#[tokio::test]
async fn answers_without_a_program_each_have_a_name() {
    let call = json!({"content": null, "tool_calls": [{"function": {"name": "run", "arguments": "{}"}}]});
    let page = "<!doctype html><html><head><title>Welcome</title></head></html>";
    for (act, name, class) in [
        (
            answer(&message(&json!({"content": null, "reasoning": "r"}), "length")),
            "empty_length",
            ErrorClass::Candidate,
        ),
        (
            answer(&message(&json!({"content": "", "reasoning_content": "r"}), "stop")),
            "reasoning_only",
            ErrorClass::Candidate,
        ),
        (
            answer(&message(&call, "tool_calls")),
            "tool_calls",
            ErrorClass::Candidate,
        ),
        (
            error(400, "maximum context length is 8192 tokens"),
            "prompt_too_long",
            ErrorClass::Candidate,
        ),
        (answer(&json!({"choices": []})), "no_choices", ErrorClass::Provider),
        (
            answer(&message(&json!({"content": ""}), "stop")),
            "empty",
            ErrorClass::Provider,
        ),
        (
            Act::Answer(200, Vec::new(), "{\"choices\": [".into()),
            "malformed",
            ErrorClass::Provider,
        ),
        (
            Act::Answer(200, Vec::new(), "null".into()),
            "no_choices",
            ErrorClass::Provider,
        ),
        (
            Act::Stream(vec!["{\"choices\": [".into()], Duration::ZERO),
            "malformed",
            ErrorClass::Provider,
        ),
        (
            Act::Answer(200, vec![("Content-Type", "text/html".into())], page.into()),
            "html_page",
            ErrorClass::Provider,
        ),
        (
            answer(&json!({"error": {"message": "overloaded", "code": 502}})),
            "reported",
            ErrorClass::Provider,
        ),
        (
            Act::Stream(vec![json!({"error": "oops"}).to_string()], Duration::ZERO),
            "reported",
            ErrorClass::Provider,
        ),
    ] {
        let (fault, _) = fault(act.clone(), json!({})).await;
        assert_eq!((fault.name(), fault.class()), (name, class), "{act:?}");
    }
}

#[tokio::test]
async fn failures_of_the_service_say_whose_fault_they_are() {
    for (act, class, said) in [
        (error(401, "no"), ErrorClass::Config, "api_key_env"),
        (error(404, "no such model"), ErrorClass::Config, "no such model"),
        (error(400, "unknown field"), ErrorClass::Config, "extra_body"),
        (
            error(429, "You exceeded your current quota: insufficient_quota"),
            ErrorClass::Config,
            "nothing left",
        ),
        (error(500, "oops"), ErrorClass::Provider, "HTTP 500: oops"),
        (
            Act::Answer(302, vec![("Location", "http://elsewhere/".into())], String::new()),
            ErrorClass::Config,
            "redirects",
        ),
    ] {
        let error = outcome(act, json!({})).await.unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    // Nothing listens here: the port was free a moment ago.
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = ask(&model(&format!("http://{gone}/v1"), json!({}))).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Infra);
    assert!(error.to_string().contains("no connection to"), "{error}");
}

#[tokio::test]
async fn a_retry_after_of_fourteen_hours_is_capped_and_nothing_is_sent_meanwhile() {
    let busy = Act::Answer(429, vec![("Retry-After", "51000".into())], "{}".into());
    let server = Server::start(move |_, _| busy.clone()).await;
    let model = model(&server.endpoint, json!({"max_retry_after_seconds": 600}));
    for _ in 0..3 {
        let error = ask(&model).await.unwrap_err();
        let pause = error.pause().expect("a pause");
        let seconds = (pause.until - chrono::Utc::now()).num_seconds();
        assert!((500..=600).contains(&seconds), "{seconds}");
        assert_eq!(error.class(), ErrorClass::RateLimit);
        assert!(error.to_string().contains("51000 s"), "{error}");
        assert!(error.to_string().contains("it is asked again at "), "{error}");
    }
    assert_eq!(server.count(), 1);
    assert!(model.pause().is_some());
}

#[tokio::test]
async fn a_service_that_fails_in_a_row_is_left_alone() {
    let server = Server::start(|_, _| error(500, "down")).await;
    let model = model(
        &server.endpoint,
        json!({"breaker_failures": 3, "breaker_pause_seconds": 600}),
    );
    for number in 1..=6 {
        let error = ask(&model).await.unwrap_err();
        assert_eq!(error.pause().is_some(), number > 3, "{error}");
    }
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn an_open_breaker_tries_again_and_closes_when_that_succeeds() {
    let server = Server::start(|number, request| if number < 2 { error(500, "down") } else { good(request) }).await;
    let model = model(
        &server.endpoint,
        json!({"breaker_failures": 2, "breaker_pause_seconds": 0.05}),
    );
    for _ in 0..2 {
        assert!(ask(&model).await.unwrap_err().pause().is_none());
    }
    let sample = loop {
        match ask(&model).await {
            Ok(sample) => break sample,
            Err(error) => {
                let pause = error.pause().expect("only a pause");
                let wait = (pause.until - chrono::Utc::now()).to_std().unwrap_or_default();
                tokio::time::sleep(wait).await;
            }
        }
    };
    assert!(!sample.text.is_empty());
    assert!(model.pause().is_none());
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn cancelling_closes_the_connection_at_once() {
    for act in [Act::Hang, Act::Stall(pieces(&["half"], false))] {
        let server = Server::start(move |_, _| act.clone()).await;
        let model = Arc::new(model(&server.endpoint, json!({})));
        let cancel = CancellationToken::new();
        let (asking, token) = (Arc::clone(&model), cancel.clone());
        let task = tokio::spawn(async move { asking.generate(&request(), &token).await });
        while server.count() == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        assert!(matches!(task.await.unwrap(), Err(ModelError::Cancelled)));
        server.hung_up.notified().await;
    }
}

#[tokio::test]
async fn no_more_requests_run_at_once_than_are_allowed() {
    let server = Server::start(|_, _| Act::Hang).await;
    let model = Arc::new(model(
        &server.endpoint,
        json!({"concurrency": 2, "first_byte_timeout_seconds": 0.5}),
    ));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let model = Arc::clone(&model);
            tokio::spawn(async move { ask(&model).await.is_err() })
        })
        .collect();
    server.hung_up.notified().await;
    assert!(
        server.count() <= 3,
        "a third one goes when one of the first two has ended"
    );
    for task in tasks {
        assert!(task.await.unwrap());
    }
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn a_missing_key_is_named_by_its_variable_and_nothing_is_sent() {
    let server = Server::start(|_, request| good(request)).await;
    let error = ask(&model(&server.endpoint, json!({"api_key_env": "NO_SUCH_VARIABLE_9"})))
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Config);
    assert!(error.to_string().contains("NO_SUCH_VARIABLE_9"), "{error}");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn extra_fields_and_headers_are_sent() {
    let server = Server::start(|_, request| good(request)).await;
    let more = json!({
        "extra_body": {"chat_template_kwargs": {"enable_thinking": false}, "top_k": 20},
        "extra_headers": "{\"X-Title\": \"clade\"}",
    });
    ask(&model(&server.endpoint, more)).await.unwrap();
    let request = &server.received()[0];
    assert_eq!(request.body["chat_template_kwargs"], json!({"enable_thinking": false}));
    assert_eq!(request.body["top_k"], 20);
    assert!(
        request.head.to_lowercase().contains("x-title: clade"),
        "{}",
        request.head
    );
}

#[tokio::test]
async fn wrong_token_counts_are_kept_and_flagged_and_missing_ones_are_unknown() {
    let mut wrong = message(&json!({"content": "text"}), "stop");
    wrong["usage"] = json!({"prompt_tokens": 5_000_000, "completion_tokens": 50});
    let price = json!({"usd_per_million_prompt_tokens": 1.0, "usd_per_million_completion_tokens": 2.0});
    let sample = outcome(answer(&wrong), price.clone()).await.unwrap();
    assert_eq!(sample.tokens_prompt, Some(5_000_000));
    assert!(sample.usage.problem.unwrap().contains("more prompt tokens"));
    wrong["usage"] = Json::Null;
    let sample = outcome(answer(&wrong), price).await.unwrap();
    assert_eq!((sample.tokens_prompt, sample.cost_usd), (None, None));
    assert_eq!(sample.usage.estimated_completion, Some(1));
}

#[tokio::test]
async fn a_model_with_a_tokenizer_estimates_by_it() {
    let mut unknown = message(
        &json!({"content": "import pandas as pd", "reasoning": "1234567"}),
        "stop",
    );
    unknown["usage"] = Json::Null;
    let tokenizer = clade::model::Tokenizer::read(&counts::file("llama.json")).unwrap();
    let path = counts::file("llama.json").display().to_string();
    let sample = outcome(answer(&unknown), json!({"tokenizer": path})).await.unwrap();
    assert_eq!((sample.tokens_prompt, sample.tokens_completion), (None, None));
    let prompt: u64 = request()
        .messages
        .iter()
        .map(|message| tokenizer.count(&message.content))
        .sum();
    assert_eq!(sample.usage.estimated_prompt, Some(prompt));
    let answer = tokenizer.count("import pandas as pd") + tokenizer.count("1234567");
    assert_eq!(sample.usage.estimated_completion, Some(answer));

    let server = Server::start(|_, request| good(request)).await;
    let error = ask(&model(
        &server.endpoint,
        json!({"tokenizer": "/nowhere/tokenizer.json"}),
    ))
    .await
    .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Config);
    assert!(error.to_string().contains("/nowhere/tokenizer.json"), "{error}");
    assert_eq!(server.count(), 0);
}

/// A service with TLS whose certificate a private authority has signed.
struct Tls(std::process::Child);

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Tls {
    fn start() -> (Self, String) {
        let script = "import http.server, ssl, sys\n\
                      class Handler(http.server.BaseHTTPRequestHandler):\n    \
                          def do_POST(self):\n        \
                              self.rfile.read(int(self.headers['content-length']))\n        \
                              body = sys.argv[2].encode()\n        \
                              self.send_response(200)\n        \
                              self.send_header('content-length', str(len(body)))\n        \
                              self.end_headers()\n        \
                              self.wfile.write(body)\n\
                      server = http.server.HTTPServer(('127.0.0.1', 0), Handler)\n\
                      context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
                      context.load_cert_chain(sys.argv[1])\n\
                      server.socket = context.wrap_socket(server.socket, server_side=True)\n\
                      print(server.server_port, flush=True)\n\
                      server.serve_forever()\n";
        let body = message(&json!({"content": "over TLS"}), "stop").to_string();
        let mut child = Command::new(super::python())
            .args(["-c", script])
            .arg(tls_file("server.pem"))
            .arg(body)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let stdout = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut port).unwrap();
        (Self(child), format!("https://localhost:{}/v1", port.trim()))
    }
}

fn tls_file(name: &str) -> String {
    format!("{}/tests/model/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_verified_against_the_authority_of_the_options() {
    let (_service, endpoint) = Tls::start();
    let trusting = model(&endpoint, json!({"ca_file": tls_file("authority.pem")}));
    assert_eq!(ask(&trusting).await.unwrap().text, "over TLS");
    // The service's own certificate is no authority, so another one that is trusted does not help.
    let error = ask(&model(&endpoint, json!({"ca_file": tls_file("other.pem")})))
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Config, "{error}");
    assert!(
        error.to_string().contains("is not trusted") && error.to_string().contains("ca_file"),
        "{error}"
    );
    for (file, said) in [("none.pem", "none.pem"), ("README.md", "no certificate")] {
        let error = ask(&model(&endpoint, json!({"ca_file": tls_file(file)})))
            .await
            .unwrap_err();
        assert_eq!(error.class(), ErrorClass::Config);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn options_are_checked_and_errors_list_what_is_known() {
    let refused = |options: Json| ModelOptions::from_json(&options.to_string()).unwrap_err().to_string();
    let with = |more: Json| {
        let mut options = json!({"provider": "openai", "endpoint": "https://x.example/v1", "model": "m"});
        options
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        refused(options)
    };
    for (error, said) in [
        (
            with(json!({"api_key": "sk-planted"})),
            "unknown option api_key: the options of a model are provider, profile",
        ),
        (refused(json!({"model": "m"})), "option provider is needed"),
        (
            refused(json!({"provider": "openai", "model": "m"})),
            "option endpoint is needed",
        ),
        (
            refused(json!({"provider": "openai", "profile": "vllm"})),
            "option model is needed",
        ),
        (
            refused(json!({"provider": "oracle"})),
            "option provider must be 'openai'",
        ),
        (
            with(json!({"profile": "best"})),
            "the profiles are compatible, deepseek, ollama, openai",
        ),
        (
            with(json!({"api_key_env": "sk-planted"})),
            "must be the name of an environment variable",
        ),
        (
            with(json!({"api_key_env": "hf_sk_planted"})),
            "must be the name of an environment variable",
        ),
        (with(json!({"endpoint": "http://10.0.0.1/v1"})), "allow_http"),
        (
            with(json!({"temperature": 3})),
            "option temperature must be from 0 to 2",
        ),
        (
            with(json!({"timeout_seconds": 0})),
            "option timeout_seconds must be seconds",
        ),
        (with(json!({"usd_per_million_prompt_tokens": 1})), "go together"),
        (with(json!({"extra_body": {"model": "x"}})), "cannot set model"),
        (
            with(json!({"extra_body": "{\"a\": {\"apiKey\": \"sk-planted\"}}"})),
            "looks like a key",
        ),
        (
            with(json!({"extra_body": "[1]"})),
            "option extra_body must be a text with a JSON object",
        ),
        (
            with(json!({"temperature": "sk-planted"})),
            "option temperature must be a number",
        ),
        (
            with(json!({"concurrency": -1})),
            "option concurrency must be a whole number",
        ),
        (
            with(json!({"stream": "sk-planted"})),
            "option stream must be true or false",
        ),
        (with(json!({"model": 5})), "option model must be a text"),
        (
            with(json!({"provider": "sk-planted"})),
            "option provider must be 'openai'",
        ),
        (
            with(json!({"extra_headers": {"a b": "x"}})),
            "option extra_headers cannot set 'a b': that is no name of a header",
        ),
        (
            with(json!({"extra_headers": {"x-a": "sk-planted\n"}})),
            "option extra_headers cannot set x-a to a text with line breaks",
        ),
        (
            with(json!({"extra_headers": {"Authorization": "Bearer sk-planted"}})),
            "cannot set Authorization",
        ),
    ] {
        assert!(error.contains(said), "{error}");
        assert!(
            !error.contains("sk-planted") && !error.contains("sk_planted"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_probe_asks_for_little() {
    let server = Server::start(|_, _| server::answer(&message(&json!({"content": "ready"}), "stop"))).await;
    let sample = model(&server.endpoint, json!({}))
        .probe(&CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(sample.text, "ready");
    assert_eq!(server.received()[0].body["max_tokens"], 1024);
}
