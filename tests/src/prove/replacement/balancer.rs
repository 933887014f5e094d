//! A load balancer as they are: it asks each node's health-check node port and sends new connections to the nodes that
//! have a pod.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};

use crate::{
    Attempt, PacedClient,
    http::get,
    kubernetes::{Cluster, Service},
    wait::await_condition,
};

/// For an answer; a node that gives none in time gets no connections.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the nodes are asked.
const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

/// It is a client too: it makes the connections itself.
#[derive(Debug)]
pub(super) struct Balancer {
    clients: Vec<Arc<PacedClient>>,
    end: Arc<AtomicBool>,
    checks: Option<JoinHandle<()>>,
}

// === impl Balancer ===

impl Balancer {
    /// Sends so many connections a second to each node that has a pod of a Service with the policy `Local`.
    pub(super) fn start(cluster: &Cluster, service: &Service, per_second: u32) -> Result<Self> {
        let port = service.health_check_node_port().context("the Service has no health-check node port")?;
        let outside = cluster.outside().clone();
        let clients = cluster
            .nodes()
            .iter()
            .map(|node| PacedClient::start(&outside, service.on(node), 0).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        let nodes: Vec<(IpAddr, Arc<PacedClient>)> =
            cluster.nodes().iter().map(|node| node.addresses()[0]).zip(clients.iter().cloned()).collect();
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let checks = std::thread::Builder::new().name("balancer".to_owned()).spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for (address, client) in &nodes {
                    let asked = get(&outside, SocketAddr::from((*address, port)), "/", PATIENCE);
                    let has_a_pod = asked.is_ok_and(|answer| answer.status == 200);
                    client.set_pace(if has_a_pod { per_second } else { 0 });
                }
                // Its result is that the time has passed.
                await_condition("the next checks", BETWEEN_CHECKS, || ended.load(Ordering::Relaxed)).ok();
            }
        })?;
        Ok(Self { clients, end, checks: Some(checks) })
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

impl Drop for Balancer {
    fn drop(&mut self) {
        if let Err(error) = self.end_checks() {
            eprintln!("{error:#}");
        }
    }
}
