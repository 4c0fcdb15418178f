//! Clients that are not ours, through the router.

use super::fixture::Group;
use crate::service::clients::{hand_in_published_requests, run_script};
use crate::shared;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_published_clients_requests_are_taken() {
    if shared::folder().is_none() {
        return;
    }
    let group = Group::of(&[1, 1], |_, site| site.set("service.gpu_as_cpu=true"));
    let (_router, client) = group.routed().await;
    hand_in_published_requests(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_submits_polls_reads_logs_and_cancels() {
    let group = Group::new(&[1, 1]);
    let (router, _client) = group.routed().await;
    run_script(router.url.clone(), group.key.clone()).await;
}
