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
    config: &config::Config,
    handle: Handle,
    addresses: watch::Receiver<Vec<IpAddr>>,
    level: LevelHandle,
    metrics: Arc<Metrics>,
    readiness: readiness::Readiness,
) -> Result<Server, ServeError> {
    let hook = (config.mode == config::Mode::Drain).then_some(config.server.hook_from);
    let state = routes::AppState::new(handle, addresses.clone(), level, metrics, readiness, hook);
    listen::start(&config.server, &routes::router(state), addresses, listen::AGENT).await
}
