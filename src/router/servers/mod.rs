//! The servers behind the router.

mod faults;
mod poll;
mod reply;
mod send;
mod state;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;
use tracing::{info, warn};

pub(super) use self::poll::poll_forever;
pub(super) use self::reply::{Reply, pass_on};
pub(super) use self::send::{Ask, Fault};
pub(super) use self::state::{Placement, View};

use self::state::State;
use super::config::{RouterConfig, ServerConfig};

/// Time after which a connection that is idle is not used again.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    /// Its name.
    pub(super) name: Arc<str>,
    /// Where it is.
    pub(super) url: String,
    /// It gets no new jobs.
    pub(super) drain: bool,
    state: Arc<State>,
    http: Client,
    times: Times,
}

/// Times of requests to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    connect: Duration,
    answer: Duration,
    poll: Duration,
    poll_answer: Duration,
}

impl Times {
    fn of(config: &RouterConfig) -> Self {
        Self {
            connect: config.connect_time,
            answer: config.answer_time,
            poll: config.poll_time,
            poll_answer: config.poll_answer_time,
        }
    }
}

/// A configuration and its servers.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) config: RouterConfig,
    pub(super) servers: Vec<Arc<Server>>,
}

impl Setup {
    /// The servers of a configuration; what is known of those that stay where they are is kept.
    pub(super) fn new(config: RouterConfig, before: Option<&Self>) -> Result<Self, reqwest::Error> {
        let times = Times::of(&config);
        let known = before.filter(|before| Times::of(&before.config).connect == times.connect);
        let http = match known.and_then(|before| before.servers.first()) {
            Some(server) => server.http.clone(),
            None => Client::builder()
                .connect_timeout(times.connect)
                // Servers close what is idle for service.head_seconds.
                .pool_idle_timeout(IDLE_TIME)
                // A key goes to the servers of the file and nowhere else.
                .redirect(Policy::none())
                .build()?,
        };
        let servers = config.servers.iter().map(|server| {
            let stays = before.and_then(|before| before.server(&server.name));
            let stays = stays.filter(|known| known.url == server.url);
            let state = stays.map_or_else(Arc::default, |known| Arc::clone(&known.state));
            Arc::new(Server::new(server, state, http.clone(), times))
        });
        let servers = servers.collect();
        Ok(Self { config, servers })
    }

    /// The server of a name.
    pub(super) fn server(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.iter().find(|server| *server.name == *name)
    }

    /// Those that answered when they were asked last.
    pub(super) fn up(&self) -> Vec<Arc<Server>> {
        self.servers.iter().filter(|server| server.is_up()).cloned().collect()
    }

    /// Names of those that did not.
    pub(super) fn down(&self) -> Vec<Arc<str>> {
        let down = self.servers.iter().filter(|server| !server.is_up());
        down.map(|server| Arc::clone(&server.name)).collect()
    }
}

impl Server {
    fn new(config: &ServerConfig, state: Arc<State>, http: Client, times: Times) -> Self {
        Self {
            name: config.name.as_str().into(),
            url: config.url.clone(),
            drain: config.drain,
            state,
            http,
            times,
        }
    }

    /// Whether it answered when it was asked last.
    pub(super) fn is_up(&self) -> bool {
        self.state.view().is_up
    }

    /// What is known of it.
    pub(super) fn view(&self) -> View {
        self.state.view()
    }

    /// Notes how it answered the question for the job of a key.
    pub(super) fn note_key_answer(&self, is_good: bool) {
        self.state.note_key_answer(is_good);
    }

    /// Counts a job that it is about to get.
    pub(super) fn note_placement(&self, class: crate::service::Class) -> Placement {
        State::place(&self.state, class)
    }

    /// Whether it has not answered for so long that it counts as gone.
    pub(super) fn is_gone(&self, after: Duration) -> bool {
        self.view().down_for.is_some_and(|time| time >= after)
    }

    /// It cannot be reached, or can again.
    fn note(&self, told: Result<state::Told, String>) {
        if let Some(change) = self.state.note(told) {
            match change {
                state::Change::Up => info!(server = &*self.name, "a server answers"),
                state::Change::Down(reason) => warn!(server = &*self.name, reason, "a server does not answer"),
            }
        }
    }
}
