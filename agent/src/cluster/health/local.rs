//! E6: this node's `healthCheckNodePort` of one Service.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{Connection, Connections, Manner, connect, local_endpoints};
use crate::{
    core::cluster::{ConnectionId, LocalEndpointsOutcome, LocalEndpointsReport, ServiceName},
    drive::clock,
};

/// Asks until nobody takes the reports any more.
///
/// kube-proxy has a listener for each family, which counts that family's endpoints. They are asked together and their
/// numbers added up: there is none any more when neither has one. The connections of a round are one to the core: when one
/// of them breaks, all are made anew.
pub async fn poll(
    service: ServiceName,
    addresses: Vec<SocketAddr>,
    manner: Manner,
    connections: Arc<Connections>,
    reports: mpsc::Sender<LocalEndpointsReport>,
) {
    let mut open: Option<(ConnectionId, Vec<Connection>)> = None;
    loop {
        let sent_at = clock::now();
        let (id, mut all) = match open.take() {
            Some(open) => open,
            None => (connections.next(), connect_all(&addresses, manner).await),
        };
        let sent_at = sent_at.max(clock::now());
        let outcome = ask_all(&mut all, manner).await;
        if outcome != LocalEndpointsOutcome::Broken {
            open = Some((id, all));
        }
        let received_at = clock::now();
        let report = LocalEndpointsReport { service: service.clone(), connection: id, sent_at, received_at, outcome };
        if reports.send(report).await.is_err() {
            return;
        }
        sleep(manner.interval).await;
    }
}

/// One address for each family.
pub fn one_of_each(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    let of = |v4: bool| addresses.iter().find(|address| address.is_ipv4() == v4);
    [of(true), of(false)].into_iter().flatten().map(|address| SocketAddr::new(*address, port)).collect()
}

/// Where nobody listens for a family, that family has no such Service.
async fn connect_all(addresses: &[SocketAddr], manner: Manner) -> Vec<Connection> {
    let mut all = Vec::new();
    for address in addresses {
        if let Ok(Ok(connection)) = timeout(manner.timeout, connect(*address)).await {
            all.push(connection);
        }
    }
    all
}

async fn ask_all(all: &mut [Connection], manner: Manner) -> LocalEndpointsOutcome {
    use LocalEndpointsOutcome::{Broken, Endpoints, Unknown};
    if all.is_empty() {
        return Broken;
    }
    let mut sum = Endpoints(0);
    for connection in all {
        let said = match timeout(manner.timeout, connection.ask("/")).await {
            Ok(Ok(reply)) => local_endpoints(&reply.body),
            // An answer that is late is given up with its connection: the next would be mistaken for it.
            Ok(Err(_)) | Err(_) => Broken,
        };
        sum = match (sum, said) {
            (Broken, _) | (_, Broken) => Broken,
            (Unknown, _) | (_, Unknown) => Unknown,
            (Endpoints(one), Endpoints(more)) => Endpoints(one.saturating_add(more)),
        };
    }
    sum
}
