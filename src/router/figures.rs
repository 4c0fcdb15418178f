//! Figures of the router for Prometheus.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::servers::Setup;

type Labels = Vec<(&'static str, String)>;

/// All figures. Those that servers tell are set when they are asked for.
pub(super) struct Figures {
    registry: Registry,
    requests: Family<Labels, Counter>,
    placed: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
    unreachable: Family<Labels, Counter>,
    retries: Family<Labels, Gauge>,
    up: Family<Labels, Gauge>,
}

impl Default for Figures {
    fn default() -> Self {
        let mut figures = Self {
            registry: Registry::with_prefix("clade_router"),
            requests: Family::default(),
            placed: Family::default(),
            refused: Family::default(),
            unreachable: Family::default(),
            retries: Family::default(),
            up: Family::default(),
        };
        let registry = &mut figures.registry;
        registry.register(
            "requests",
            "Requests by method, route and code",
            figures.requests.clone(),
        );
        registry.register(
            "jobs_placed",
            "Jobs that a server took since the start",
            figures.placed.clone(),
        );
        registry.register(
            "jobs_refused",
            "Jobs that a server did not take, so that the next was asked",
            figures.refused.clone(),
        );
        registry.register(
            "unreachable_answers",
            "Requests that were refused because a server did not answer",
            figures.unreachable.clone(),
        );
        registry.register(
            "server_retries",
            "Requests to a server that were made again since the start",
            figures.retries.clone(),
        );
        registry.register(
            "server_up",
            "1 for a server that answers, 0 for one that does not",
            figures.up.clone(),
        );
        figures
    }
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Figures")
    }
}

fn of(name: &str) -> Labels {
    vec![("server", name.to_owned())]
}

impl Figures {
    /// Counts a request.
    pub(super) fn note_request(&self, method: &str, route: &str, code: u16) {
        let labels = vec![
            ("method", method.to_owned()),
            ("route", route.to_owned()),
            ("code", code.to_string()),
        ];
        self.requests.get_or_create(&labels).inc();
    }

    /// Counts a job that a server took.
    pub(super) fn note_placed(&self, server: &str) {
        self.placed.get_or_create(&of(server)).inc();
    }

    /// Counts a job that a server did not take.
    pub(super) fn note_refused(&self, server: &str) {
        self.refused.get_or_create(&of(server)).inc();
    }

    /// Counts a request that some servers kept from being answered.
    pub(super) fn note_unreachable(&self, servers: &[Arc<str>]) {
        for server in servers {
            self.unreachable.get_or_create(&of(server)).inc();
        }
    }

    /// Sets what is known of the servers.
    pub(super) fn set_servers(&self, setup: &Setup) {
        self.up.clear();
        self.retries.clear();
        for server in &setup.servers {
            let (view, labels) = (server.view(), of(&server.name));
            self.up.get_or_create(&labels).set(i64::from(view.is_up));
            let retries = i64::try_from(view.retries).unwrap_or(i64::MAX);
            self.retries.get_or_create(&labels).set(retries);
        }
    }

    /// The text that Prometheus reads.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
