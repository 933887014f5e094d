//! One withdrawal of an endpoint, and a question to the fence by the agent's own client, from an endpoint that is going. Whenever
//! the fence calls a node confirmed, that node's rules are read, and again when the round ends.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use lastsyn::{
    config::FencePlace,
    core::{
        cluster::{ClusterEvent, FenceRequest, NodeName},
        confirm::FenceProgress,
        listener::Family,
    },
    fence::client::{Asking, ask},
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};

use crate::{
    kubernetes::{Cluster, Fence, KubePod, PORT, PodSpec},
    wait::await_condition,
};

/// How long a node is given to be confirmed. That one is not, is no failure.
const PATIENCE: Duration = Duration::from_secs(15);
/// For a node that nothing is wrong with to have an endpoint in its rules.
const SOON: Duration = Duration::from_secs(4);
/// As many nodes over two families.
const ALL: usize = 6;

/// A Service whose slices are written by hand, and a pod in them that is never ready: who asks.
#[derive(Debug)]
pub struct Bed {
    name: String,
    number: u8,
    pod: KubePod,
}

/// What came of a round.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Nodes and families whose rules led to the endpoint when the fence was asked.
    pub stale: usize,
    /// Nodes and families that were called confirmed in time.
    pub confirmed: usize,
    /// Those of them whose rules led to the endpoint then.
    pub wrong: Vec<String>,
    /// From the withdrawal to the last confirmation, in milliseconds, if all were.
    pub took_ms: Option<u64>,
}

impl Bed {
    /// A Service of its own.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn make(cluster: &Cluster, number: u8) -> Result<Self> {
        let name = format!("bed-{number}");
        let node = usize::from(number) % cluster.nodes().len();
        let pod = cluster.pod(node, &PodSpec::new(name.clone(), name.clone(), PORT))?;
        let bed = Self { name, number, pod };
        cluster.api().post(
            "/api/v1/namespaces/default/services",
            &json!({"metadata": {"name": bed.name}, "spec": {
                "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"],
                "ports": [{"name": "http", "protocol": "TCP", "port": PORT}],
            }}),
        )?;
        for family in Family::ALL {
            let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
            cluster.api().post(slices, &bed.slice(family, None))?;
        }
        Ok(bed)
    }

    /// The address of a round over a family; the one that stays for none.
    fn address(&self, family: Family, round: Option<u16>) -> IpAddr {
        let round = round.map_or(0, |round| round + 1);
        let [high, low] = round.to_be_bytes();
        match family {
            Family::V4 => Ipv4Addr::new(10, 200 + self.number, high, low).into(),
            Family::V6 => Ipv6Addr::new(0xfd00, 0xbed, u16::from(self.number), 0, 0, 0, 0, round).into(),
        }
    }

    fn endpoint(&self, family: Family, round: u16) -> SocketAddr {
        (self.address(family, Some(round)), PORT).into()
    }

    fn slice(&self, family: Family, round: Option<u16>) -> Value {
        let addresses = [Some(self.address(family, None)), round.map(|round| self.address(family, Some(round)))];
        let ready = addresses.into_iter().flatten().map(|address| (address, true));
        let own = self.pod.addresses().into_iter().filter(|address| address.is_ipv4() == (family == Family::V4));
        let endpoints: Vec<_> = ready
            .chain(own.map(|address| (address, false)))
            .map(|(address, ready)| json!({"addresses": [address.to_string()], "conditions": {"ready": ready}}))
            .collect();
        json!({
            "metadata": {
                "name": format!("{}-{}", self.name, family.name().to_lowercase()),
                "labels": {"kubernetes.io/service-name": self.name},
            },
            "addressType": family.name(),
            "ports": [{"name": "http", "protocol": "TCP", "port": PORT}],
            "endpoints": endpoints,
        })
    }

    fn write(&self, cluster: &Cluster, round: Option<u16>) -> Result<()> {
        for family in Family::ALL {
            let slice = self.slice(family, round);
            let name = slice.pointer("/metadata/name").and_then(Value::as_str).context("a name")?;
            let endpoints = slice.get("endpoints").context("endpoints")?;
            let path = format!("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{name}");
            cluster.api().patch(&path, &json!({"endpoints": endpoints}))?;
        }
        Ok(())
    }

    /// Puts an endpoint in, withdraws it, and asks the fence.
    ///
    /// # Errors
    ///
    /// When a write or a look at the rules fails. What is wrong of a confirmation is in the outcome.
    pub fn round(&self, cluster: &Cluster, fence: &Fence, round: u16) -> Result<Outcome> {
        self.write(cluster, Some(round))?;
        // With nothing wrong all have it in a second; those that something is wrong with are not waited for.
        let first = cluster.nodes().first().context("a cluster has nodes")?;
        let has = || first.routes_to(self.endpoint(Family::V4, round)).unwrap_or(false);
        drop(await_condition("the endpoint in a node's rules", SOON, has));
        self.write(cluster, None)?;
        let withdrawn_at = Instant::now();
        let mut outcome = Outcome::default();
        for node in cluster.nodes() {
            for family in Family::ALL {
                outcome.stale += usize::from(node.routes_to(self.endpoint(family, round))?);
            }
        }
        let place: FencePlace = format!("http://{}", fence.address()).parse().map_err(anyhow::Error::msg)?;
        let asking = Asking {
            place,
            bounds: (Duration::from_secs(2), Duration::from_secs(2)),
            pod: format!("default/{}", self.name),
        };
        let confirmed = self.pod.host().block_on(move || self.listen(cluster, asking, round))?;
        outcome.confirmed = confirmed.len();
        for (node, family, routes) in confirmed {
            // What is confirmed stays so, whatever becomes of the node.
            if routes || cluster.node(&node.0)?.routes_to(self.endpoint(family, round))? {
                outcome.wrong.push(format!("{node} {family} in round {round} of {}", self.name));
            }
        }
        if outcome.confirmed == ALL {
            outcome.took_ms = u64::try_from(withdrawn_at.elapsed().as_millis()).ok();
        }
        Ok(outcome)
    }

    /// Asks, and reads a node's rules whenever it is called confirmed: whether they lead to the endpoint.
    async fn listen(&self, cluster: &Cluster, asking: Asking, round: u16) -> Result<Vec<(NodeName, Family, bool)>> {
        let (says, mut said) = mpsc::channel(256);
        let (question, asked) = watch::channel(Some(FenceRequest(1)));
        let asking = tokio::spawn(ask(asking, asked, says));
        let until = Instant::now() + PATIENCE;
        let mut confirmed = BTreeMap::new();
        while confirmed.len() < ALL {
            let Ok(Some(event)) = timeout_at(until, said.recv()).await else { break };
            let ClusterEvent::Fence(FenceProgress { node, family, .. }) = event else { continue };
            let routes = cluster.node(&node.0)?.routes_to(self.endpoint(family, round))?;
            confirmed.insert((node, family), routes);
        }
        drop(question);
        asking.abort();
        Ok(confirmed.into_iter().map(|((node, family), routes)| (node, family, routes)).collect())
    }
}

impl Outcome {
    /// Checks that nothing was called confirmed that was not.
    ///
    /// # Errors
    ///
    /// When something was; the message names it.
    pub fn check(&self) -> Result<()> {
        ensure!(self.wrong.is_empty(), "called confirmed while its rules lead to the endpoint: {:?}", self.wrong);
        Ok(())
    }
}
