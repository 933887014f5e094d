//! Connections of the watched ports, as of the scrape.

use std::collections::{BTreeMap, BTreeSet};

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{ListenerLabels, PortLabel};
use crate::{
    core::listener::{self, Port},
    sockets::Census,
};

/// The metrics of connections.
pub(super) struct ConnectionMetrics {
    handshakes: Family<ListenerLabels, Gauge>,
    established: Family<ListenerLabels, Gauge>,
}

impl ConnectionMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let handshakes = Family::default();
        registry.register("handshakes", "Handshakes under way", handshakes.clone());
        let established = Family::default();
        registry.register("established", "Connections that are established", established.clone());
        Self { handshakes, established }
    }

    /// Takes over what was counted of the ports that are shown. No sample rather than a 0 that nobody counted.
    pub(super) fn take(&self, census: Option<&BTreeMap<(Port, listener::Family), Census>>, shown: &BTreeSet<Port>) {
        self.handshakes.clear();
        self.established.clear();
        for ((port, family), counted) in census.into_iter().flatten().filter(|((port, _), _)| shown.contains(port)) {
            let labels = ListenerLabels { port: PortLabel(*port), family: family.name() };
            for (gauges, count) in [(&self.handshakes, counted.handshakes), (&self.established, counted.established)] {
                gauges.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
    }
}
