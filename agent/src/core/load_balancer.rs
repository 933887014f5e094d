//! E6: a load balancer that asks each node's `healthCheckNodePort` goes on sending to this node until it has found it
//! failing. For how long the drain waits for that.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use super::{
    clock::Monotonic,
    cluster::{ConnectionId, LocalEndpointsOutcome, LocalEndpointsReport, ServiceName},
};

/// The Services that list the pod and have had a `healthCheckNodePort` in this drain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoadBalancers {
    window: Duration,
    services: BTreeMap<ServiceName, Port>,
}

/// One `healthCheckNodePort`, on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Port {
    /// Where the window starts: at the withdrawal, or at a later "none any more". Nothing but a withdrawal that is taken
    /// back moves it to an earlier time.
    counts_from: Option<Monotonic>,
    connection: Option<Connection>,
}

/// The newest connection to it, and what its last answer said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Connection {
    id: ConnectionId,
    last_sent: Monotonic,
    said: Said,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Said {
    /// Nothing yet, or zero.
    Nothing,
    /// That there are local endpoints. A zero that follows says that they have gone; any other may be a kube-proxy's that
    /// is starting.
    Endpoints,
    /// The connection is broken.
    Broken,
}

// === impl LoadBalancers ===

impl LoadBalancers {
    /// None known. `window` is how long a load balancer may take to find a node failing, and to act on it
    /// (`loadBalancer.window`).
    pub fn new(window: Duration) -> Self {
        Self { window, services: BTreeMap::new() }
    }

    /// A Service that lists the pod has a `healthCheckNodePort`. `true` if it had none before.
    pub fn added(&mut self, service: ServiceName) -> bool {
        let entry = self.services.entry(service);
        let is_new = matches!(entry, Entry::Vacant(_));
        entry.or_default();
        is_new
    }

    /// The Services that have, or had, a `healthCheckNodePort`.
    pub fn services(&self) -> impl Iterator<Item = &ServiceName> {
        self.services.keys()
    }

    /// A Service no longer routes to the pod. The window starts again with every withdrawal: between two looks at the
    /// port the node may have answered that it has endpoints.
    pub fn withdrawn(&mut self, service: &ServiceName, at: Monotonic) {
        if let Some(port) = self.services.get_mut(service) {
            port.counts_from = port.counts_from.max(Some(at));
        }
    }

    /// A Service routes to the pod (again).
    pub fn routed(&mut self, service: &ServiceName) {
        if let Some(port) = self.services.get_mut(service) {
            port.counts_from = None;
        }
    }

    /// What this node's port of a Service answered.
    pub fn answered(&mut self, report: &LocalEndpointsReport) {
        if let Some(port) = self.services.get_mut(&report.service) {
            port.answered(report);
        }
    }

    /// From when on E6 is met, by what is known now. `None` while a Service still routes to the pod.
    pub fn met_from(&self) -> Option<Monotonic> {
        let mut latest = Monotonic::default();
        for port in self.services.values() {
            latest = latest.max(port.counts_from? + self.window);
        }
        Some(latest)
    }
}

// === impl Port ===

impl Port {
    fn answered(&mut self, report: &LocalEndpointsReport) {
        let new = Connection { id: report.connection, last_sent: report.sent_at, said: Said::Nothing };
        let before = match self.connection {
            Some(connection) if report.connection < connection.id => return,
            Some(connection) if report.connection == connection.id => connection,
            _ => new,
        };
        if before.said == Said::Broken || report.sent_at < before.last_sent {
            return;
        }
        let said = match report.outcome {
            LocalEndpointsOutcome::Broken => Said::Broken,
            LocalEndpointsOutcome::Unknown => before.said,
            LocalEndpointsOutcome::Endpoints(0) => Said::Nothing,
            LocalEndpointsOutcome::Endpoints(1..) => Said::Endpoints,
        };
        if before.said == Said::Endpoints && report.outcome == LocalEndpointsOutcome::Endpoints(0) {
            self.counts_from = self.counts_from.map(|from| from.max(report.received_at));
        }
        self.connection = Some(Connection { said, ..new });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_nanos(seconds * 1_000_000_000)
    }

    fn web() -> ServiceName {
        ServiceName("web".to_owned())
    }

    fn load_balancers() -> LoadBalancers {
        let mut load_balancers = LoadBalancers::new(WINDOW);
        load_balancers.added(web());
        load_balancers
    }

    fn answer(load_balancers: &mut LoadBalancers, connection: u64, seconds: u64, outcome: LocalEndpointsOutcome) {
        load_balancers.answered(&LocalEndpointsReport {
            service: web(),
            connection: ConnectionId(connection),
            sent_at: at(seconds),
            received_at: at(seconds),
            outcome,
        });
    }

    use LocalEndpointsOutcome::{Broken, Endpoints, Unknown};

    #[test]
    fn e6_without_a_port_there_is_no_window() {
        assert_eq!(LoadBalancers::new(WINDOW).met_from(), Some(at(0)));
    }

    #[test]
    fn e6_holds_while_a_service_routes_here() {
        let mut load_balancers = load_balancers();
        assert_eq!(load_balancers.met_from(), None);
        load_balancers.withdrawn(&web(), at(5));
        load_balancers.added(ServiceName("api".to_owned()));
        assert_eq!(load_balancers.met_from(), None, "the other one does");
        load_balancers.withdrawn(&ServiceName("api".to_owned()), at(4));
        assert_eq!(load_balancers.met_from(), Some(at(15)));
    }

    #[test]
    fn e6_without_an_answer_the_window_counts_from_the_withdrawal() {
        let mut load_balancers = load_balancers();
        load_balancers.withdrawn(&web(), at(5));
        assert_eq!(load_balancers.met_from(), Some(at(15)));
        answer(&mut load_balancers, 1, 6, Endpoints(2));
        assert_eq!(load_balancers.met_from(), Some(at(15)), "other pods of this node take the traffic");
    }

    #[test]
    fn e6_counts_from_the_first_zero_after_the_withdrawal() {
        let mut load_balancers = load_balancers();
        answer(&mut load_balancers, 1, 1, Endpoints(1));
        load_balancers.withdrawn(&web(), at(5));
        answer(&mut load_balancers, 1, 6, Unknown);
        answer(&mut load_balancers, 1, 7, Endpoints(0));
        answer(&mut load_balancers, 1, 8, Unknown);
        answer(&mut load_balancers, 1, 9, Endpoints(0));
        assert_eq!(load_balancers.met_from(), Some(at(17)));
    }

    #[test]
    fn e6_zero_counts_only_on_a_connection_that_answered_otherwise_before() {
        let mut load_balancers = load_balancers();
        load_balancers.withdrawn(&web(), at(5));
        answer(&mut load_balancers, 1, 6, Endpoints(1));
        answer(&mut load_balancers, 1, 7, Broken);
        answer(&mut load_balancers, 1, 8, Endpoints(1));
        answer(&mut load_balancers, 1, 9, Endpoints(0));
        answer(&mut load_balancers, 2, 9, Endpoints(0));
        assert_eq!(load_balancers.met_from(), Some(at(15)), "a starting kube-proxy says zero");
        answer(&mut load_balancers, 2, 10, Endpoints(1));
        answer(&mut load_balancers, 1, 11, Endpoints(0));
        assert_eq!(load_balancers.met_from(), Some(at(15)), "the older connection says nothing of this process");
        answer(&mut load_balancers, 2, 12, Endpoints(0));
        assert_eq!(load_balancers.met_from(), Some(at(22)));
        answer(&mut load_balancers, 2, 11, Endpoints(1));
        answer(&mut load_balancers, 2, 13, Endpoints(0));
        assert_eq!(load_balancers.met_from(), Some(at(22)), "it came out of turn");
        answer(&mut load_balancers, 2, 14, Broken);
        assert_eq!(load_balancers.met_from(), Some(at(22)), "a fault makes no drain shorter");
    }

    #[test]
    fn e6_starts_again_with_every_withdrawal() {
        let mut load_balancers = load_balancers();
        answer(&mut load_balancers, 1, 1, Endpoints(1));
        answer(&mut load_balancers, 1, 2, Endpoints(0));
        load_balancers.withdrawn(&web(), at(5));
        assert_eq!(load_balancers.met_from(), Some(at(15)), "zero is also said while the fallback routes here");
        load_balancers.routed(&web());
        assert_eq!(load_balancers.met_from(), None);
        load_balancers.withdrawn(&web(), at(30));
        assert_eq!(load_balancers.met_from(), Some(at(40)));
        answer(&mut load_balancers, 1, 31, Endpoints(1));
        answer(&mut load_balancers, 1, 32, Endpoints(0));
        assert_eq!(load_balancers.met_from(), Some(at(42)));
    }
}
