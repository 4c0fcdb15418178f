//! A service with chat completions that misbehaves on purpose: raw HTTP/1.1 over a socket, one answer a connection.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the service does with a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Status, headers, body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Pieces of a stream, with a wait before each.
    Stream(Vec<String>, Duration),
    /// Pieces of a stream whose connection breaks after the last.
    Cut(Vec<String>),
    /// Nothing at all; the connection stays open.
    Hang,
    /// The head of a stream and these pieces, then nothing.
    Stall(Vec<String>),
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Received {
    pub head: String,
    pub body: Json,
}

/// The service.
pub struct Server {
    pub endpoint: String,
    received: Arc<Mutex<Vec<Received>>>,
    /// Notified when a client has closed its connection before it had its answer.
    pub hung_up: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A service that answers request number `n`, from 0, as the script says.
    pub async fn start(script: impl Fn(usize, &Json) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let hung_up = Arc::new(Notify::new());
        let (log, gone, script) = (Arc::clone(&received), Arc::clone(&hung_up), Arc::new(script));
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (log, gone, script) = (Arc::clone(&log), Arc::clone(&gone), Arc::clone(&script));
                tokio::spawn(async move {
                    // A client that goes away is part of the game.
                    let _ = serve(socket, &log, &gone, &*script).await;
                });
            }
        });
        Self {
            endpoint,
            received,
            hung_up,
            task,
        }
    }

    /// Requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().clone()
    }

    /// Number of requests so far.
    pub fn count(&self) -> usize {
        self.received.lock().len()
    }
}

async fn serve(
    mut socket: TcpStream,
    log: &Mutex<Vec<Received>>,
    gone: &Notify,
    script: &(dyn Fn(usize, &Json) -> Act + Send + Sync),
) -> std::io::Result<()> {
    let Some(request) = read_request(&mut socket).await? else {
        return Ok(());
    };
    let body = request.body.clone();
    let number = {
        let mut log = log.lock();
        log.push(request);
        log.len() - 1
    };
    match script(number, &body) {
        Act::Answer(status, headers, body) => {
            let mut head = format!(
                "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            socket.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
        }
        Act::Stream(pieces, wait) => {
            send_pieces(&mut socket, &pieces, wait).await?;
            socket.write_all(b"0\r\n\r\n").await?;
        }
        Act::Cut(pieces) => send_pieces(&mut socket, &pieces, Duration::ZERO).await?,
        Act::Hang => wait_for_the_end(&mut socket, gone).await?,
        Act::Stall(pieces) => {
            send_pieces(&mut socket, &pieces, Duration::ZERO).await?;
            wait_for_the_end(&mut socket, gone).await?;
        }
    }
    socket.shutdown().await
}

async fn send_pieces(socket: &mut TcpStream, pieces: &[String], wait: Duration) -> std::io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    for piece in pieces {
        tokio::time::sleep(wait).await;
        let text = format!("data: {piece}\n\n");
        socket
            .write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
            .await?;
        socket.flush().await?;
    }
    Ok(())
}

async fn wait_for_the_end(socket: &mut TcpStream, gone: &Notify) -> std::io::Result<()> {
    let mut rest = [0; 64];
    while socket.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
    gone.notify_one();
    Ok(())
}

async fn read_request(socket: &mut TcpStream) -> std::io::Result<Option<Received>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        let mut piece = [0; 4096];
        match socket.read(&mut piece).await? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse::<usize>()
                .ok()
        })
        .unwrap_or(0);
    let mut body = bytes.split_off(head_end + 4);
    let mut rest = vec![0; length.saturating_sub(body.len())];
    socket.read_exact(&mut rest).await?;
    body.extend_from_slice(&rest);
    Ok(Some(Received {
        head,
        body: serde_json::from_slice(&body).unwrap(),
    }))
}

/// Token counts of a right answer.
pub const PROMPT_TOKENS: i64 = 700;
pub const COMPLETION_TOKENS: i64 = 50;

fn usage() -> Json {
    json!({"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS, "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS})
}

/// A whole answer with one message.
pub fn message(message: &Json, finish: &str) -> Json {
    json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage()})
}

pub fn answer(body: &Json) -> Act {
    Act::Answer(200, vec![("Content-Type", "application/json".into())], body.to_string())
}

/// An error as most services send it.
pub fn error(status: u16, text: &str) -> Act {
    Act::Answer(status, Vec::new(), json!({"error": {"message": text}}).to_string())
}

/// Pieces of a stream with a text, up to its end or not.
pub fn pieces(texts: &[&str], is_whole: bool) -> Vec<String> {
    let mut pieces: Vec<String> = texts
        .iter()
        .map(|text| json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string())
        .collect();
    if is_whole {
        pieces.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string());
        pieces.push(json!({"choices": [], "usage": usage()}).to_string());
        pieces.push("[DONE]".to_owned());
    }
    pieces
}

/// The answer of a model that writes programs the instant sandbox understands, from the seed of the request.
pub fn program(request: &Json) -> String {
    let seed = request["seed"].as_u64().unwrap();
    let program = crate::engine::instant::program(seed, "remote");
    format!("A plan for seed {seed}.\n\n```python\n{program}```\n")
}

/// The program as a stream or as a whole, as the request wants it.
pub fn good(request: &Json) -> Act {
    let text = program(request);
    if request["stream"] == true {
        let (first, second) = text.split_at(text.len() / 2);
        Act::Stream(pieces(&[first, second], true), Duration::ZERO)
    } else {
        answer(&message(&json!({"role": "assistant", "content": text}), "stop"))
    }
}
