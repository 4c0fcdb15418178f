//! Figures for Prometheus: what all servers of ours count alike, and the text in which they are told.

use std::fmt;

use axum::extract::{MatchedPath, Request};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Metric, Registry};

/// Names and values by which a figure is told apart from others of its name.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// The format of the text.
const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The figures of a server; requests are among them.
pub(crate) struct Exposition {
    registry: Registry,
    requests: Family<Labels, Counter>,
}

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exposition")
    }
}

impl Exposition {
    /// Figures whose names begin with a prefix.
    pub(crate) fn new(prefix: &str) -> Self {
        let mut exposition = Self {
            registry: Registry::with_prefix(prefix),
            requests: Family::default(),
        };
        let requests = exposition.requests.clone();
        exposition.add("requests", "Requests by method, route and code", requests);
        exposition
    }

    /// Adds a figure.
    pub(crate) fn add(&mut self, name: &str, help: &str, figure: impl Metric) {
        self.registry.register(name, help, figure);
    }

    /// Answers a request, and counts it by route and code.
    pub(crate) async fn count(&self, request: Request, next: Next) -> Response {
        let (method, route) = method_and_route(&request);
        let response = next.run(request).await.into_response();
        let code = response.status().as_u16().to_string();
        let labels = vec![("method", method), ("route", route), ("code", code)];
        self.requests.get_or_create(&labels).inc();
        response
    }

    /// All figures, as they are now.
    pub(crate) fn response(&self) -> Result<Response, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
    }
}

/// Method and route of a request as figures name them. Made-up paths and methods must not make new figures without end.
fn method_and_route(request: &Request) -> (String, String) {
    let path = request.extensions().get::<MatchedPath>();
    let method = request.method().as_str();
    let is_usual = ["GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS"].contains(&method);
    (
        if is_usual { method } else { "other" }.to_owned(),
        path.map_or("unknown", MatchedPath::as_str).to_owned(),
    )
}
