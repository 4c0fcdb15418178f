//! What the service does: workers, health, figures.

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::App;
use super::error::{ApiError, ErrorBody};
use super::types::{ClassLoad, ClassLoads, Health, Identity, WorkerAnswer, Workers, time};
use crate::scheduler::{ENGINE_VERSION, host_name};
use crate::service::access::Caller;
use crate::service::error::ServiceError;
use crate::service::fleet::{MemberState, MemberStatus};
use crate::service::queue::Class;

/// Lists the workers.
#[utoipa::path(
    get,
    path = "/workers/status",
    tag = "service",
    responses(
        (status = 200, description = "The workers", body = Workers),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn workers(State(app): State<App>, caller: Caller) -> Json<Workers> {
    let answer = |status: crate::service::run::WorkerStatus| {
        let is_busy = status.job_id.is_some();
        let is_shown = status.user.as_deref().is_some_and(|user| caller.may_see(user));
        WorkerAnswer {
            worker_id: status.worker.worker_id,
            status: if is_busy { "busy" } else { "idle" }.to_owned(),
            job_id: status.job_id.filter(|_| is_shown),
            class: status.worker.class.as_str().to_owned(),
            host: host_name(),
            version: ENGINE_VERSION.to_owned(),
            executor: app.executor.clone(),
            slots: 1,
            busy: u32::from(is_busy),
            last_seen: None,
        }
    };
    let remote = |status: MemberStatus| {
        let job = status.jobs.iter().find(|(_, user)| caller.may_see(user));
        WorkerAnswer {
            status: status.state.as_str().to_owned(),
            job_id: job.map(|(job_id, _)| job_id.clone()),
            class: status.class.as_str().to_owned(),
            busy: u32::try_from(status.jobs.len()).unwrap_or(u32::MAX),
            worker_id: status.worker_id,
            host: status.host,
            version: status.version,
            executor: status.backend,
            slots: status.slots,
            last_seen: Some(time(status.last_seen)),
        }
    };
    let own = app.board.all().into_iter().map(answer);
    Json(Workers {
        workers_show: own.chain(app.fleet.status().into_iter().map(remote)).collect(),
    })
}

/// Says whose the key is.
#[utoipa::path(
    get,
    path = "/whoami",
    tag = "service",
    responses(
        (status = 200, description = "The user and the role of the key", body = Identity),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn whoami(caller: Caller) -> Json<Identity> {
    Json(Identity {
        role: caller.role.as_str().to_owned(),
        user: caller.user,
        key_id: caller.key_id,
    })
}

/// Says whether the service takes jobs, and how much it has to do.
#[utoipa::path(
    get,
    path = "/health",
    tag = "service",
    responses((status = 200, description = "The service works", body = Health))
)]
pub async fn health(State(app): State<App>) -> Json<Health> {
    let status = if app.queue.is_closed() { "stopping" } else { "ok" };
    Json(Health {
        status: status.to_owned(),
        version: ENGINE_VERSION.to_owned(),
        classes: Some(ClassLoads {
            cpu: load(&app, Class::Cpu),
            gpu: load(&app, Class::Gpu),
        }),
    })
}

fn load(app: &App, class: Class) -> ClassLoad {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let own = app.board.all();
    let own = own.iter().filter(|status| status.worker.class == class);
    let (mut slots, mut busy) = (0, 0);
    for status in own {
        slots += 1;
        busy += u32::from(status.job_id.is_some());
    }
    let takes_jobs = |member: &&MemberStatus| matches!(member.state, MemberState::Idle | MemberState::Busy);
    let remote = app.fleet.status();
    for member in remote.iter().filter(|member| member.class == class).filter(takes_jobs) {
        slots += member.slots;
        busy += count(member.jobs.len());
    }
    ClassLoad {
        slots,
        busy,
        waiting: count(app.queue.waiting(class)),
    }
}

/// Gives figures for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "service",
    responses(
        (status = 200, description = "Figures in OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
        (status = 401, description = "No valid key", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
    ),
    security(("key" = []))
)]
pub async fn metrics(State(app): State<App>, _caller: Caller) -> Result<Response, ApiError> {
    let by_state = app.queue.by_state().await?;
    app.figures.set_jobs(&by_state);
    for class in Class::ALL {
        app.figures.set_waiting(class, app.queue.waiting(class));
    }
    let workers = app.board.all();
    let busy = workers.iter().filter(|worker| worker.job_id.is_some()).count();
    let remote = app.fleet.status();
    let remote = |state: MemberState| remote.iter().filter(|member| member.state == state).count();
    let idle = workers.len() - busy + remote(MemberState::Idle);
    app.figures.set_workers(busy + remote(MemberState::Busy), idle);
    let told = app.figures.exposition.response();
    Ok(told.map_err(|error| ServiceError::Server(std::io::Error::other(error)))?)
}
