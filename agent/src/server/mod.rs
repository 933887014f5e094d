//! What the agent answers over HTTP, on both families and a unix socket.

pub(crate) mod listen;
pub(crate) mod peer;
pub mod readiness;
mod routes;
mod scrape;
pub mod status;

use std::{net::IpAddr, sync::Arc};

use tokio::sync::watch;

pub use listen::{Limits, ServeError, Server};
pub use routes::MARK;

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
    readiness: readiness::Readiness,
) -> Result<Server, ServeError> {
    let state = routes::AppState::new(handle, addresses.clone(), level, metrics, readiness, config.hook_from);
    listen::start(config, &routes::router(state), addresses, listen::AGENT).await
}
