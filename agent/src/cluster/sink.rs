//! Where everything that the cluster says goes: to the loop, in the order in which it is told, a bounded number at a time.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::mpsc;

use crate::core::{
    cluster::{ClusterEvent, ObservationId},
    event::Event,
};

/// How many events may wait for the loop. Who has more to tell waits.
pub(super) const WAITING: usize = 256;

/// Nobody listens any more: the drain is over.
#[derive(Debug)]
pub(super) struct Closed;

/// The way to the loop, for one drain's observation.
#[derive(Clone, Debug)]
pub(super) struct Sink {
    observation: ObservationId,
    events: mpsc::Sender<Event>,
    left_out: Arc<AtomicU64>,
}

impl Sink {
    /// For one observation. `left_out` counts what could not be read of objects.
    pub(super) fn new(observation: ObservationId, events: mpsc::Sender<Event>, left_out: Arc<AtomicU64>) -> Self {
        Self { observation, events, left_out }
    }

    /// Tells the loop.
    ///
    /// # Errors
    /// If it does not listen any more.
    pub(super) async fn tell(&self, event: ClusterEvent) -> Result<(), Closed> {
        self.send(Event::Cluster(self.observation, Arc::new(event))).await
    }

    /// Tells the loop something that is not of the observation.
    ///
    /// # Errors
    /// If it does not listen any more.
    pub(super) async fn send(&self, event: Event) -> Result<(), Closed> {
        self.events.send(event).await.map_err(|_closed| Closed)
    }

    /// Counts parts of objects that could not be read.
    pub(super) fn left_out(&self, count: u32) {
        if count > 0 {
            self.left_out.fetch_add(count.into(), Ordering::Relaxed);
        }
    }
}
