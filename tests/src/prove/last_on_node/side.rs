//! One of the two ways to shut down: a Service with a pod to be deleted and one that stays on another node, and a load
//! balancer.

use std::{net::IpAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    Attempt, Outcome, Server, ServerConfig, Summary, agent_log,
    clock::monotonic_now,
    kubernetes::{Cluster, KubePod, KubeletPod, PORT, PodSpec, Service, ServiceKind, ServiceSpec, Shutdown},
    prove::balancer::{Balancer, Checks},
    wait::await_condition,
};

/// As those of a passthrough load balancer that cannot be told otherwise: a check every 3 s, two failures. It adds up to what its
/// users see, 6 to 12 s: 8 to 11 s.
const CHECKS: Checks = Checks { every: Duration::from_secs(3), failures: 2, until_all_know: Duration::from_secs(5) };
/// What its users see at least.
const SENDS_ON: Duration = Duration::from_secs(6);
const START: Duration = Duration::from_mins(1);
/// The `ServiceAccount` of the pods.
pub(super) const ACCOUNT: &str = "agent";

/// What is there before the deletion.
pub(super) struct Scene<'a> {
    shutdown: Shutdown,
    cluster: &'a Cluster,
    service: Service,
    stays: (KubePod, Server),
    pod: KubeletPod<'a>,
    addresses: Vec<IpAddr>,
    balancer: Balancer,
    seen: Seen,
}

/// When what happened, on the clock of [`monotonic_now`].
#[derive(Clone, Debug, Default)]
struct Seen {
    deleted_at: u64,
    not_serving_at: Option<u64>,
    gone_at: Option<u64>,
    log: String,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Side {
    /// How the pod was shut down.
    pub shutdown: Shutdown,
    /// Every connection of the load balancer.
    pub attempts: Vec<Attempt>,
    /// From the pod's deletion until the last connection that the load balancer tried at its node.
    pub sent_on: Duration,
    /// From the pod's deletion until a slice listed it as not serving; none where none did before it had gone.
    pub not_serving: Option<Duration>,
    /// From the pod's deletion until it had gone.
    pub took: Duration,
    /// The agent's verdict, where there is an agent.
    pub verdict: Option<Value>,
    /// The agent's log, where there is an agent.
    pub log: String,
    node: Vec<IpAddr>,
    deleted_at: u64,
}

// === impl Scene ===

impl<'a> Scene<'a> {
    /// Makes it, around a pod that may not be ready yet.
    pub(super) fn new(cluster: &'a Cluster, shutdown: Shutdown, per_second: u32) -> Result<Self> {
        let app = shutdown.name();
        let pod = KubeletPod::envoy(cluster, app, ACCOUNT, shutdown)?;
        let service = cluster.service(&ServiceSpec::new(app, app, PORT).kind(ServiceKind::LoadBalancer).local())?;
        let name = stays(shutdown);
        let other = cluster.pod(1, &PodSpec::new(&name, app, PORT))?;
        let server = Server::start(other.host(), ServerConfig { name, port: PORT, ..ServerConfig::default() })?;
        other.set_ready(true)?;
        let balancer = Balancer::start(cluster, &service, per_second, CHECKS)?;
        let (stays, addresses, seen) = ((other, server), Vec::new(), Seen::default());
        Ok(Self { shutdown, cluster, service, stays, pod, addresses, balancer, seen })
    }

    /// Waits until both pods have served the load balancer over both families.
    pub(super) fn await_served(&mut self) -> Result<()> {
        self.pod.await_ready(1, START)?;
        let object = self.pod.object()?.context("the pod has gone")?;
        let addresses = object.pointer("/status/podIPs").and_then(Value::as_array).into_iter().flatten();
        self.addresses = addresses.filter_map(|address| address.get("ip")?.as_str()?.parse().ok()).collect();
        ensure!(self.addresses.len() == 2, "the pod has the addresses {:?}", self.addresses);
        let both = [self.shutdown.name().to_owned(), stays(self.shutdown)];
        await_condition("both pods to serve the load balancer", START, || {
            let attempts = self.balancer.ended_so_far();
            both.iter().all(|name| {
                [false, true].iter().all(|v6| {
                    attempts.iter().any(|attempt| attempt.target.is_ipv6() == *v6 && served_by(attempt, name))
                })
            })
        })
    }

    /// Asks for the pod's deletion.
    pub(super) fn delete(&mut self) -> Result<()> {
        self.seen.deleted_at = monotonic_now();
        self.pod.delete()
    }

    /// Notes what has happened since the last look. `true` once the pod has gone.
    pub(super) fn look(&mut self) -> Result<bool> {
        let seen = &mut self.seen;
        if seen.gone_at.is_some() {
            return Ok(true);
        }
        let log = self.pod.log();
        if log.len() > seen.log.len() {
            seen.log = log;
        }
        if seen.not_serving_at.is_none() {
            let endpoints = self.cluster.endpoints(self.service.name())?;
            let is_not_serving = endpoints.iter().any(|one| self.addresses.contains(&one.address) && !one.serving);
            seen.not_serving_at = is_not_serving.then(monotonic_now);
        }
        seen.gone_at = self.pod.object()?.is_none().then(monotonic_now);
        Ok(seen.gone_at.is_some())
    }

    /// Ends the load balancer, whose connections it waits for.
    pub(super) fn end(self) -> Result<Side> {
        let Seen { deleted_at, not_serving_at, gone_at, log } = self.seen;
        let node = self.cluster.node(self.pod.node())?.addresses().to_vec();
        let attempts = self.balancer.stop()?;
        drop(self.stays);
        let since = |at: u64| Duration::from_nanos(at.saturating_sub(deleted_at));
        let last = attempts.iter().filter(|attempt| node.contains(&attempt.target.ip())).map(|one| one.tried_at).max();
        Ok(Side {
            shutdown: self.shutdown,
            attempts,
            sent_on: since(last.context("the load balancer never sent to the pod's node")?),
            not_serving: not_serving_at.map(since),
            took: since(gone_at.context("the pod has not gone")?),
            verdict: agent_log::verdict(&log),
            log,
            node,
            deleted_at,
        })
    }
}

// === impl Side ===

impl Side {
    /// Its connections in numbers.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.attempts)
    }

    /// How many connections the load balancer tried at the pod's node after the deletion, and how many of them were lost.
    pub fn after_the_deletion(&self) -> Summary {
        Summary::of(self.attempts.iter().filter(|one| self.is_at_the_node(one) && one.tried_at >= self.deleted_at))
    }

    /// How many connections the pod served that were tried later than that after its deletion.
    pub fn served_after(&self, length: Duration) -> usize {
        let from = self.deleted_at.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        let name = self.shutdown.name();
        self.attempts.iter().filter(|attempt| attempt.tried_at >= from && served_by(attempt, name)).count()
    }

    /// Checks that it was what it is to be: the load balancer went on sending for as long as it does, and the pod that stays
    /// served the others.
    pub(super) fn check(&self) -> Result<()> {
        let Self { shutdown, sent_on, .. } = self;
        ensure!(*sent_on >= SENDS_ON, "{shutdown:?}: the load balancer sent on for {sent_on:?} only");
        let name = stays(*shutdown);
        let after = self.attempts.iter().filter(|one| one.tried_at > self.deleted_at && served_by(one, &name)).count();
        ensure!(after > 0, "{shutdown:?}: {name} served nobody after the deletion: {}", self.summary());
        Ok(())
    }

    fn is_at_the_node(&self, attempt: &Attempt) -> bool {
        self.node.contains(&attempt.target.ip())
    }

    pub(super) fn to_json(&self) -> Value {
        let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let (all, after) = (self.summary(), self.after_the_deletion());
        json!({
            "tried": all.tried,
            "lost": all.lost(),
            "triedAtTheNodeAfterDeletion": after.tried,
            "refused": all.refused, "reset": all.reset, "timedOut": all.timed_out, "lostOtherwise": all.closed + all.other,
            "balancerSentOnMs": millis(self.sent_on),
            "notServingMs": self.not_serving.map(millis),
            "goneMs": millis(self.took),
            "reason": self.verdict.as_ref().and_then(|verdict| verdict.get("reason")),
        })
    }
}

/// The name of the pod that stays.
fn stays(shutdown: Shutdown) -> String {
    format!("stays-{}", shutdown.name())
}

fn served_by(attempt: &Attempt, name: &str) -> bool {
    matches!(&attempt.outcome, Outcome::Served { by } if by == name)
}
