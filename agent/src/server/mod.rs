//! What the agent answers over HTTP, on both families and a unix socket.

mod listen;
mod peer;
mod routes;
pub mod status;

use std::{net::IpAddr, sync::Arc};

use tokio::sync::watch;

pub use listen::{ServeError, Server};

use crate::{
    config,
    drive::Handle,
    telemetry::{log::LevelHandle, metrics::Metrics},
};

/// Listens, and answers from now on.
///
/// # Errors
///
/// If the address cannot be had. A unix socket that cannot is only warned of: the hook finds the agent over TCP.
pub async fn bind(
    config: &config::Server,
    handle: Handle,
    addresses: watch::Receiver<Vec<IpAddr>>,
    level: LevelHandle,
    metrics: Arc<Metrics>,
) -> Result<Server, ServeError> {
    let state = routes::AppState::new(handle, addresses.clone(), level, metrics);
    listen::start(config, &routes::router(state), addresses).await
}
