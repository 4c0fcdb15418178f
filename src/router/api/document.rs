//! The description of the routes for programs: what servers say of theirs, where the router does the same.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{OpenApi, RefOr, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{App, admin, jobs, status, uploads, workers};
use crate::service::api::{self as service_api, PREFIX};

/// The description.
pub(super) fn document() -> OpenApi {
    let own = OpenApiRouter::<App>::new()
        .routes(routes!(jobs::list))
        .routes(routes!(uploads::upload))
        .routes(routes!(workers::status))
        .routes(routes!(workers::drain))
        .routes(routes!(workers::resume))
        .routes(routes!(status::health))
        .routes(routes!(admin::servers))
        .routes(routes!(admin::reload_file));
    let (_, mut document) = OpenApiRouter::<App>::new().nest(PREFIX, own).split_for_parts();
    // What is there already stays.
    document.merge(service_api::document());
    for item in document.paths.paths.values_mut() {
        operations(item).for_each(may_be_unreachable);
    }
    service_api::describe(&mut document, "Clade job service behind a router");
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten()
}

/// Any answer but that about the health of the servers may need one that does not answer.
fn may_be_unreachable(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    let Some(refusal) = responses.get("401").cloned() else {
        return;
    };
    let content = match refusal {
        RefOr::T(refusal) => refusal.content,
        RefOr::Ref(_) => return,
    };
    let mut response = ResponseBuilder::new()
        .description("A server that is needed does not answer, or is stopping")
        .build();
    response.content = content;
    responses.insert("503".to_owned(), RefOr::T(response));
}
