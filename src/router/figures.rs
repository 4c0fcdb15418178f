//! Figures of the router for Prometheus.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::servers::Setup;
use crate::service::{Exposition, Labels};

/// All figures. Those that servers tell are set when they are asked for.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) exposition: Exposition,
    placed: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
    unreachable: Family<Labels, Counter>,
    retries: Family<Labels, Gauge>,
    up: Family<Labels, Gauge>,
}

impl Default for Figures {
    fn default() -> Self {
        let mut figures = Self {
            exposition: Exposition::new("clade_router"),
            placed: Family::default(),
            refused: Family::default(),
            unreachable: Family::default(),
            retries: Family::default(),
            up: Family::default(),
        };
        let exposition = &mut figures.exposition;
        exposition.add(
            "jobs_placed",
            "Jobs that a server took since the start",
            figures.placed.clone(),
        );
        exposition.add(
            "jobs_refused",
            "Jobs that a server did not take, so that the next was asked",
            figures.refused.clone(),
        );
        exposition.add(
            "unreachable_answers",
            "Requests that were refused because a server did not answer",
            figures.unreachable.clone(),
        );
        exposition.add(
            "server_retries",
            "Requests to a server that were made again since the start",
            figures.retries.clone(),
        );
        exposition.add(
            "server_up",
            "1 for a server that answers, 0 for one that does not",
            figures.up.clone(),
        );
        figures
    }
}

fn of(name: &str) -> Labels {
    vec![("server", name.to_owned())]
}

impl Figures {
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
}
