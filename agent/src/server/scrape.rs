//! What is counted for who looks alone: the connections in `GET /metrics` and `GET /v1/status`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::{Mutex, MutexGuard};

use super::status::Connections;
use crate::{
    core::{
        clock::Monotonic,
        listener::{Family, Port},
    },
    drive::{Look, clock},
    sockets::{self, Census},
    telemetry::metrics::{Metrics, shown_ports},
};

/// A count of connections that is not older is told again: it costs the kernel walks over the machine's whole table, and
/// anybody may ask.
const FRESH: Duration = Duration::from_secs(1);

/// Counts connections, and answers scrapes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Scrapes {
    metrics: Arc<Metrics>,
    last: Arc<Mutex<Option<Counted>>>,
}

type Counts = BTreeMap<(Port, Family), Census>;

/// A count, and when it was made; `None` where the kernel did not tell.
struct Counted {
    at: Monotonic,
    connections: Option<Counts>,
}

impl Scrapes {
    pub(super) fn of(metrics: Arc<Metrics>) -> Self {
        Self { metrics, last: Arc::default() }
    }

    /// The metrics' whole text.
    pub(super) async fn text(&self, look: &Look) -> String {
        let counted = self.counted(look).await;
        self.metrics.text(look, counted.as_ref().and_then(|counted| counted.connections.as_ref()))
    }

    /// The connections of the listeners that metrics are told of.
    pub(super) async fn connections(&self, look: &Look) -> Option<Vec<Connections>> {
        let counted = self.counted(look).await;
        let connections = counted.as_ref()?.connections.as_ref()?;
        let sockets = look.evidence.as_ref().and_then(|evidence| evidence.sockets.as_ref().ok());
        let told = connections.iter().map(|((port, family), census)| Connections {
            port: port.number(),
            family: *family,
            handshakes: census.handshakes,
            established: census.established,
            accept_queue: sockets.and_then(|sockets| sockets.listeners.get(port)).copied(),
        });
        Some(told.collect())
    }

    /// A fresh count, made in a thread of its own, so that a long table keeps no drain waiting. Whoever asks meanwhile waits for
    /// the same one.
    async fn counted(&self, look: &Look) -> MutexGuard<'_, Option<Counted>> {
        let mut last = self.last.lock().await;
        if last.as_ref().is_none_or(|counted| counted.at.age_at(clock::now()).reaches(FRESH)) {
            let ports = shown_ports(look);
            let counted = tokio::task::spawn_blocking(move || sockets::census(&ports)).await;
            let counted = counted.map_err(|error| error.to_string()).and_then(|counted| counted);
            if let Err(why) = &counted {
                tracing::debug!(%why, "connections are not counted");
            }
            *last = Some(Counted { at: clock::now(), connections: counted.ok() });
        }
        last
    }
}
