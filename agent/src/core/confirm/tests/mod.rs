//! The rules one by one, and the traces that broke simpler rules.

mod connection;
mod counts;
mod kinds;
mod nodes;
mod traces;

use super::*;
use crate::core::cluster::{ConnectionId, FamilyHealth, HealthOutcome, HealthStatus, NodeTime};

const WATCH_LAG: u64 = 2_000;
const SYNC_TIME: u64 = 3_000;
const MIN_SYNC: u64 = 1_000;
const STEADY: u64 = WATCH_LAG + 2 * SYNC_TIME + MIN_SYNC;

/// One node's confirmations, with times in milliseconds and answers that take no time.
struct Scene {
    confirmations: Confirmations,
    connection: u64,
}

impl Scene {
    /// The node `a` is known, and the last relevant change was at `change`.
    fn changed_at(change: u64) -> Self {
        let mut scene = Self::new();
        scene.change(change);
        scene
    }

    fn new() -> Self {
        let bounds = Bounds {
            watch_lag: Duration::from_millis(WATCH_LAG),
            sync_time: Duration::from_millis(SYNC_TIME),
            min_sync: Duration::from_millis(MIN_SYNC),
        };
        let mut confirmations = Confirmations::new(bounds, StatusGiven::default());
        confirmations.node_added(&node("a"), OperatingSystem::Linux);
        Self { confirmations, connection: 1 }
    }

    fn change(&mut self, millis: u64) {
        self.confirmations.relevant_change(Family::V4, at(millis));
    }

    /// The next connection will be another.
    fn reconnect(&mut self) {
        self.connection += 1;
    }

    /// An answer to a request sent at `millis`, with the stamp `stamp`, healthy.
    fn answer(&mut self, millis: u64, stamp: i128) {
        self.answer_that(millis, stamp, true);
    }

    fn answer_that(&mut self, millis: u64, stamp: i128, healthy: bool) {
        self.report("a", millis, status(Some((stamp, healthy)), None));
    }

    fn report(&mut self, name: &str, millis: u64, outcome: HealthOutcome) {
        self.report_over(self.connection, name, millis, outcome);
    }

    fn report_over(&mut self, connection: u64, name: &str, millis: u64, outcome: HealthOutcome) {
        self.confirmations.health(&HealthReport {
            node: node(name),
            connection: ConnectionId(connection),
            sent_at: at(millis),
            received_at: at(millis),
            outcome,
        });
    }

    fn ask_fence(&mut self, request: u64, millis: u64) {
        self.confirmations.fence_requested(FenceRequest(request), at(millis));
    }

    fn fence_shows(&mut self, request: u64, stood_at: u64) {
        self.confirmations.fence(&FenceProgress {
            request: FenceRequest(request),
            node: node("a"),
            family: Family::V4,
            stood_at: at(stood_at),
            received_at: at(stood_at),
        });
    }

    fn state(&self) -> NodeState {
        self.state_of("a")
    }

    fn state_of(&self, name: &str) -> NodeState {
        self.confirmations.state(&node(name), Family::V4).unwrap()
    }

    /// What the node was confirmed by; `None` where it was not.
    fn by(&self) -> Option<By> {
        match self.state() {
            NodeState::Confirmed { by, .. } => Some(by),
            _ => None,
        }
    }

    fn tally(&self) -> Tally {
        self.confirmations.tally(Family::V4)
    }

    fn contradict(&mut self, millis: u64) -> Option<By> {
        self.confirmations.contradicted(&node("a"), Family::V4, at(millis))
    }
}

fn node(name: &str) -> NodeName {
    NodeName(name.to_owned())
}

fn at(millis: u64) -> Monotonic {
    Monotonic::from_nanos(millis * 1_000_000)
}

fn status(v4: Option<(i128, bool)>, v6: Option<(i128, bool)>) -> HealthOutcome {
    let health = |(stamp, healthy)| FamilyHealth { last_updated: NodeTime(stamp), healthy };
    HealthOutcome::Status(HealthStatus { v4: v4.map(health), v6: v6.map(health) })
}

fn no_status() -> HealthOutcome {
    HealthOutcome::NoStatus("an answer of another proxy".to_owned())
}
