//! A load balancer as they are: it asks each node's health-check node port and sends new connections to the nodes that
//! have a pod.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};

use crate::{
    Attempt, Host, PacedClient,
    clock::monotonic_now,
    http::get,
    kubernetes::{Cluster, Service},
    wait::await_condition,
};

/// For an answer; a node that gives none in time has failed the check.
const PATIENCE: Duration = Duration::from_millis(500);

/// How a load balancer judges a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checks {
    /// From one check of a node to the next.
    pub(super) every: Duration,
    /// How many have to fail one after the other. A single one that succeeds makes a node good again.
    pub(super) failures: u32,
    /// From the last of them until the last of the balancer's machines sends nothing to the node any more.
    pub(super) until_all_know: Duration,
}

/// It is a client too: it makes the connections itself.
#[derive(Debug)]
pub(super) struct Balancer {
    clients: Vec<Arc<PacedClient>>,
    end: Arc<AtomicBool>,
    checks: Option<JoinHandle<()>>,
}

/// A node as it sees it.
struct Target {
    check_at: SocketAddr,
    client: Arc<PacedClient>,
    failures: u32,
    stops_at: Option<u64>,
}

// === impl Balancer ===

impl Balancer {
    /// Sends so many connections a second to each node that has a pod of a Service with the policy `Local`.
    pub(super) fn start(cluster: &Cluster, service: &Service, per_second: u32, checks: Checks) -> Result<Self> {
        let port = service.health_check_node_port().context("the Service has no health-check node port")?;
        let outside = cluster.outside().clone();
        let clients = cluster
            .nodes()
            .iter()
            .map(|node| PacedClient::start(&outside, service.on(node), 0).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        let mut targets: Vec<Target> = cluster
            .nodes()
            .iter()
            .zip(&clients)
            .map(|(node, client)| Target {
                check_at: (node.addresses()[0], port).into(),
                client: Arc::clone(client),
                failures: 0,
                stops_at: None,
            })
            .collect();
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let checks = std::thread::Builder::new().name("balancer".to_owned()).spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for target in &mut targets {
                    target.check(&outside, per_second, checks);
                }
                // Its result is that the time has passed.
                await_condition("the next checks", checks.every, || {
                    targets.iter_mut().for_each(Target::stop_if_due);
                    ended.load(Ordering::Relaxed)
                })
                .ok();
            }
        })?;
        Ok(Self { clients, end, checks: Some(checks) })
    }

    /// The connections that have ended up to now.
    pub(super) fn ended_so_far(&self) -> Vec<Attempt> {
        self.clients.iter().flat_map(|client| client.ended_so_far()).collect()
    }

    /// Sends no more, and returns all connections, node by node.
    pub(super) fn stop(mut self) -> Result<Vec<Attempt>> {
        self.end_checks()?;
        let mut attempts = Vec::new();
        for client in std::mem::take(&mut self.clients) {
            let client = Arc::into_inner(client).context("a client is still in use")?;
            attempts.extend(client.stop()?);
        }
        Ok(attempts)
    }

    fn end_checks(&mut self) -> Result<()> {
        self.end.store(true, Ordering::Relaxed);
        match self.checks.take() {
            Some(checks) => checks.join().map_err(|_panic| anyhow!("the balancer's thread panicked")),
            None => Ok(()),
        }
    }
}

// === impl Target ===

impl Target {
    fn check(&mut self, from: &Host, per_second: u32, checks: Checks) {
        let has_a_pod = get(from, self.check_at, "/", PATIENCE).is_ok_and(|answer| answer.status == 200);
        if has_a_pod {
            (self.failures, self.stops_at) = (0, None);
            self.client.set_pace(per_second);
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures == checks.failures {
            let until_all_know = u64::try_from(checks.until_all_know.as_nanos()).unwrap_or(u64::MAX);
            self.stops_at = Some(monotonic_now().saturating_add(until_all_know));
        }
        self.stop_if_due();
    }

    fn stop_if_due(&mut self) {
        if self.stops_at.is_some_and(|at| monotonic_now() >= at) {
            self.stops_at = None;
            self.client.set_pace(0);
        }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        if let Err(error) = self.end_checks() {
            eprintln!("{error:#}");
        }
    }
}
