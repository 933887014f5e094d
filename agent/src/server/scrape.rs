//! `GET /metrics`: what is counted for it alone.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::Mutex;

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
/// anybody may scrape.
const FRESH: Duration = Duration::from_secs(1);

/// Answers scrapes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Scrapes {
    metrics: Arc<Metrics>,
    last: Arc<Mutex<Option<Counted>>>,
}

/// A count, and when it was made; `None` where the kernel did not tell.
struct Counted {
    at: Monotonic,
    connections: Option<BTreeMap<(Port, Family), Census>>,
}

impl Scrapes {
    pub(super) fn of(metrics: Arc<Metrics>) -> Self {
        Self { metrics, last: Arc::default() }
    }

    /// The whole text. The connections are counted in a thread of their own, so that a long table keeps no drain waiting.
    pub(super) async fn text(&self, look: &Look) -> String {
        // Whoever asks meanwhile waits for the same count.
        let mut last = self.last.lock().await;
        if last.as_ref().is_none_or(|counted| counted.at.age_at(clock::now()).reaches(FRESH)) {
            let ports = shown_ports(look);
            let counted = tokio::task::spawn_blocking(move || sockets::census(&ports)).await;
            let connections = match counted {
                Ok(Ok(connections)) => Some(connections),
                Ok(Err(why)) => {
                    tracing::debug!(%why, "connections are not in the metrics");
                    None
                }
                Err(error) => {
                    tracing::debug!(%error, "connections are not in the metrics");
                    None
                }
            };
            *last = Some(Counted { at: clock::now(), connections });
        }
        self.metrics.text(look, last.as_ref().and_then(|counted| counted.connections.as_ref()))
    }
}
