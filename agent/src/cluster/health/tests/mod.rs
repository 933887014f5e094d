//! The poller against real sockets on loopback.

mod captures;
mod conduct;
mod mutations;

use std::{net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::*;
pub(super) use crate::cluster::scripted_server::{Does, Server, http};
use crate::core::{
    clock::Monotonic,
    cluster::{HealthOutcome, HealthReport, NodeName, Wanted},
};

/// How long any of this may take before it has failed.
const DEADLINE: Duration = Duration::from_secs(30);

/// A poller, and what it reports.
pub(super) struct Polled {
    pub(super) reports: mpsc::Receiver<HealthReport>,
    pub(super) wanted: watch::Sender<Wanted>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) const WANTED: Wanted = Wanted::Yes { since: Monotonic::from_nanos(0), due: None };

pub(super) fn start(addresses: Vec<IpAddr>, port: u16, timeout: Duration) -> Polled {
    let target = Target {
        node: NodeName("a".to_owned()),
        addresses,
        port,
        manner: Manner { interval: Duration::from_millis(5), timeout },
        connections: Arc::default(),
        rate: Arc::new(Rate::new(10_000)),
    };
    let (sender, reports) = mpsc::channel(1024);
    let (wanted, receiver) = watch::channel(Wanted::Yes { since: crate::drive::clock::now(), due: None });
    Polled { reports, wanted, task: tokio::spawn(poll(target, receiver, sender)) }
}

pub(super) fn poll_server(server: &Server, timeout: Duration) -> Polled {
    start(vec![server.address.ip()], server.address.port(), timeout)
}

impl Polled {
    pub(super) async fn next(&mut self) -> HealthReport {
        tokio::time::timeout(DEADLINE, self.reports.recv()).await.expect("in time").expect("it goes on")
    }
}

pub(super) const LONG: Duration = Duration::from_secs(20);
pub(super) const SHORT: Duration = Duration::from_millis(50);

/// A status with this stamp for both families.
pub(super) fn status(second: u8) -> String {
    let of = format!(r#"{{"lastUpdated":"2026-11-29T21:46:{second:02}.5Z","healthy":true}}"#);
    format!(
        r#"{{"lastUpdated":"2026-11-29T21:46:32Z","currentTime":"2026-11-29T21:46:32Z","healthy":true,"status":{{"IPv4":{of},"IPv6":{of}}}}}"#
    )
}

pub(super) fn is_status(outcome: &HealthOutcome) -> bool {
    matches!(outcome, HealthOutcome::Status(status) if status.v4.is_some() && status.v6.is_some())
}
