//! Tells the server beside the loop: one thing after the other, each tried a few times.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use tokio::sync::mpsc;

use super::Server;
use crate::core::phase::Phase;

/// Before the second try; three times as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const FACTOR: f32 = 3.0;
/// After the first try.
const MORE_TRIES: usize = 3;

/// The loop's end.
pub struct Teller {
    orders: mpsc::UnboundedSender<Phase>,
    results: mpsc::UnboundedReceiver<Told>,
    server: Server,
}

/// What came of it; in words, where it failed.
type Told = (Phase, Result<(), String>);

impl Teller {
    /// Starts the task that tells. It ends with the teller.
    pub fn start(server: Server) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let (outbox, results) = mpsc::unbounded_channel();
        tokio::spawn(work(server.clone(), inbox, outbox));
        Self { orders, results, server }
    }

    /// Whether the server has an ear for this.
    pub fn hears(&self, phase: Phase) -> bool {
        self.server.hears(phase)
    }

    /// Has this told, after what was ordered before it. What is not told yet by then is tried no more than once more: a
    /// newer order is never kept waiting by a server that does not answer an older one.
    pub fn tell(&self, phase: Phase) {
        // The task ends with this, so that it is there.
        if self.orders.send(phase).is_err() {
            tracing::error!(phase = phase.name(), "nobody is there to tell the server: the task has ended");
        }
    }

    /// The next result. Cancelling loses none.
    pub async fn next(&mut self) -> (Phase, Result<(), String>) {
        match self.results.recv().await {
            Some(told) => told,
            None => std::future::pending().await,
        }
    }
}

async fn work(server: Server, mut orders: mpsc::UnboundedReceiver<Phase>, results: mpsc::UnboundedSender<Told>) {
    while let Some(phase) = orders.recv().await {
        let pauses =
            ExponentialBuilder::default().with_min_delay(FIRST_PAUSE).with_factor(FACTOR).with_max_times(MORE_TRIES);
        let mut tries = 0_u32;
        let outcome = (|| {
            tries += 1;
            server.tell(phase)
        })
        .retry(pauses)
        .when(|error| error.is_temporary() && orders.is_empty())
        .notify(|error, pause| tracing::debug!(phase = phase.name(), %error, ?pause, "the server is told again"))
        .await;
        let outcome = outcome.map_err(|error| match tries {
            1 => error.to_string(),
            tries => format!("{error} ({tries} tries)"),
        });
        if results.send((phase, outcome)).is_err() {
            return;
        }
    }
}
