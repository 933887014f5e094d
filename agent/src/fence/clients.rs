//! The way to the API server for what callers need of it: one client for all of them, made anew now and then, as tokens and
//! certificates rotate.

use std::time::Duration;

use kube::Client;
use tokio::{sync::Mutex, time::Instant};

use crate::cluster::{Access, Refusal};

/// For how long one is used. A token is good for minutes at the least.
const KEPT: Duration = Duration::from_mins(1);

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct Clients {
    access: Access,
    kept: Mutex<Option<(Instant, Client)>>,
}

impl Clients {
    pub(super) fn new(access: Access) -> Self {
        Self { access, kept: Mutex::default() }
    }

    /// A client, and what it is to wait for before it asks.
    ///
    /// # Errors
    /// If the token or the certificates cannot be read.
    pub(super) async fn get(&self) -> Result<(Client, &Access), Refusal> {
        let mut kept = self.kept.lock().await;
        if let Some((_, client)) = kept.as_ref().filter(|(made, _)| made.elapsed() < KEPT) {
            return Ok((client.clone(), &self.access));
        }
        let client = self.access.client(CONNECT).await.map_err(|error| Refusal::from(&error))?;
        *kept = Some((Instant::now(), client.clone()));
        Ok((client, &self.access))
    }
}
