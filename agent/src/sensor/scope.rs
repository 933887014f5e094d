//! Whose network the agent is in: the pod's own, or with `hostNetwork` the node's.

use std::{path::Path, time::Duration};

use super::counts::{Around, Counts, Sensor};
use crate::{
    config::SensorNetwork,
    core::{
        listener::Port,
        verdict::{NotObserved, Strategy},
    },
};

/// Whose network it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The pod's own.
    Pod,
    /// The node's, which the pod shares.
    Node,
}

/// A setting that only the node's first network namespace has (`net_core_table` in `net/core/sysctl_net_core.c`, as opposed
/// to `netns_core_table`).
const IN_THE_FIRST_ALONE: &str = "/proc/sys/net/core/netdev_max_backlog";

impl Scope {
    /// By what the operator says. Where that is nothing, the node's is known as the machine's first; a node that is a
    /// container itself is not known by this.
    pub fn of(network: SensorNetwork) -> Self {
        match network {
            SensorNetwork::Node => Self::Node,
            SensorNetwork::Auto if Path::new(IN_THE_FIRST_ALONE).exists() => Self::Node,
            SensorNetwork::Auto | SensorNetwork::Pod => Self::Pod,
        }
    }
}

/// A sensor that cannot tell the pod's SYNs from others of the node.
pub(super) struct Unscoped(pub(super) Box<dyn Sensor>);

impl Sensor for Unscoped {
    fn strategy(&self) -> Strategy {
        self.0.strategy()
    }

    fn is_scoped(&self) -> bool {
        false
    }

    fn interfaces(&self) -> Vec<String> {
        self.0.interfaces()
    }

    fn blind(&self) -> Option<Duration> {
        self.0.blind()
    }

    fn watch(&mut self, port: Port) -> Result<(), String> {
        self.0.watch(port)
    }

    fn read(&mut self, around: Around<'_>) -> Counts {
        let mut counts = self.0.read(around);
        // The namespace's count of handshakes is the node's, and so is what the sensor sees; but a SYN that is redirected to
        // a pod's own namespace is completed there.
        counts.attempts_anywhere = None;
        counts.not_observed.push(NotObserved {
            what: "scope".to_owned(),
            name: None,
            family: None,
            why: "the sensor is unscoped: the pod shares the node's network (hostNetwork), whose interfaces carry SYNs for \
                  others too, and those for the pod by the addresses of Services or from processes of the node may be \
                  missing"
                .to_owned(),
        });
        counts
    }
}
