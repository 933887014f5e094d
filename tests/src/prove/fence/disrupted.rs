//! The fence is killed, cut off from the API server, or replaced in the middle of drains. A node stands still meanwhile, so that
//! none of them can have ended before.

use std::{thread, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::{
    AgentConfig,
    kubernetes::{Access, Cluster, Ended, Fence, FenceRight, PORT, PodSpec, Scene, ServiceSpec, Stopping, Workload},
    wait::await_condition,
};

/// Longer than any drain.
const HOOK: Duration = Duration::from_mins(2);
/// For all agents to have asked.
const ASKED: Duration = Duration::from_secs(40);
/// The drained pods' grace period, in seconds: a Lease may have to expire in it, and one replica of two does not answer. The
/// hook's own bound.
const GRACE: u32 = 100;
const HOOK_BOUND: [&str; 2] = ["--max-wait", "95s"];
/// The fence's port, and the label of its pods.
const FENCE: (u16, &str) = (19_481, "fence");

/// What becomes of the replica that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It dies. The other one takes over when its Lease has expired.
    Killed,
    /// It does not reach the API server any more, and the agents still reach it.
    Partitioned,
    /// It is asked to end, and a new one starts.
    Upgraded,
}

/// How a drain ended, and whether any node's rules led to its pod then.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// The nodes whose rules led to the pod when it had.
    pub routed: Vec<String>,
}

impl How {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Killed, Self::Partitioned, Self::Upgraded];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Partitioned => "partitioned",
            Self::Upgraded => "upgraded",
        }
    }
}

/// Drains so many pods, half of them with rights of their own and half told by the fence, and disturbs the fence.
///
/// # Errors
///
/// When it does not go as planned.
pub fn drain(scene: &Scene, how: How, drains: usize) -> Result<Vec<Outcome>> {
    let (cluster, name) = (&scene.cluster, how.name());
    let access = cluster.fence_access_in("default", &format!("fence-{name}"), &FenceRight::SOURCE)?;
    let fences = [
        replica(cluster, 1, &format!("fence-{name}-0"), &access)?,
        replica(cluster, 2, &format!("fence-{name}-1"), &access)?,
    ];
    let service = cluster.service(&ServiceSpec::new(format!("fence-{name}"), FENCE.1, FENCE.0))?;
    let place = service.cluster().into_iter().find(std::net::SocketAddr::is_ipv4).context("no address of IPv4")?;
    for fence in &fences {
        cluster.await_routes(fence.pod(), FENCE.0, true)?;
    }
    let workloads = (0..drains)
        .map(|number| {
            let config = AgentConfig::default().env("LASTSYN_ROUTING_FENCE", format!("http://{place}"));
            let spec = PodSpec { grace_seconds: GRACE, ..PodSpec::new(format!("drains-{name}-{number}"), "web", PORT) };
            let told = number % 2 == 1;
            let config = if told { config.env("LASTSYN_ROUTING_SOURCE", "fence") } else { config };
            Workload::start(cluster, number % 2, &spec, (!told).then_some(&scene.access), config)
        })
        .collect::<Result<Vec<_>>>()?;
    for workload in &workloads {
        scene.await_routes(&workload.pod)?;
    }

    let node = cluster.nodes().last().context("a cluster has nodes")?;
    node.proxy().freeze()?;
    let disturbed = (|| {
        let stopping =
            workloads.iter().map(|workload| workload.delete_with(&HOOK_BOUND)).collect::<Result<Vec<_>>>()?;
        let answers = |fence: &Fence| -> u64 {
            let status = fence.status(scene.stays.host()).unwrap_or_default();
            status.get("answers").and_then(Value::as_u64).unwrap_or(0)
        };
        let all = u64::try_from(drains)?;
        let serves = await_condition("every agent's question", ASKED, || {
            let [one, other] = fences.each_ref().map(answers);
            (one + other >= all).then_some(usize::from(other > one))
        })?;
        let upgraded = disturb(cluster, how, fences.get(serves).context("one of two")?, &access)?;
        anyhow::Ok((stopping, upgraded))
    })();
    node.proxy().thaw()?;
    let (stopping, _upgraded) = disturbed?;
    thread::scope(|scope| {
        let ending: Vec<_> = stopping
            .into_iter()
            .zip(&workloads)
            .map(|(stopping, workload)| scope.spawn(move || outcome(cluster, stopping, workload)))
            .collect();
        ending
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_panic| Err(anyhow!("a drain's thread panicked"))))
            .collect()
    })
}

fn replica(cluster: &Cluster, node: usize, name: &str, access: &Access) -> Result<Fence> {
    Fence::start(cluster, node, name, access)
}

/// What becomes of the replica that serves; and the new one.
fn disturb(cluster: &Cluster, how: How, serves: &Fence, access: &Access) -> Result<Option<Fence>> {
    match how {
        How::Killed => serves.kill()?,
        How::Partitioned => serves.pod().host().nft(
            "table inet cut { chain out { type filter hook output priority -300; tcp dport 6443 drop; }; \
             chain in { type filter hook input priority -300; tcp sport 6443 drop; }; }\n",
        )?,
        How::Upgraded => {
            serves.stop()?;
            return Ok(Some(replica(cluster, 0, "fence-upgraded-2", access)?));
        }
    }
    Ok(None)
}

fn outcome(cluster: &Cluster, stopping: Stopping<'_>, workload: &Workload) -> Result<Outcome> {
    // Looked at before the server ends, as the verdict speaks of that moment.
    let ended = stopping.verdict(HOOK)?;
    let mut routed = Vec::new();
    for node in cluster.nodes() {
        for endpoint in workload.pod.endpoints(PORT) {
            if node.routes_to(endpoint)? {
                routed.push(node.name().to_owned());
            }
        }
    }
    stopping.finish(HOOK)?;
    Ok(Outcome { ended, routed })
}

impl Outcome {
    /// Checks that the drain did not end early, and that its verdict names what it lacked.
    ///
    /// # Errors
    ///
    /// When it did, or does not.
    pub fn check(&self) -> Result<()> {
        let Self { ended, routed } = self;
        let verdict = &ended.verdict;
        let names = |what: &str| {
            let all = verdict.get("notObserved").and_then(Value::as_array).into_iter().flatten();
            all.into_iter().any(|entry| entry.get("what").and_then(Value::as_str) == Some(what))
        };
        match ended.reason() {
            "routed-away" | "synced" => ensure!(routed.is_empty(), "{routed:?} led to the pod: {verdict:#}"),
            "bound" => ensure!(names("fence") || names("node") || names("api"), "nothing is named: {verdict:#}"),
            "unverified" => ensure!(
                routed.is_empty() && (names("fence") || names("node") || names("sync") || names("api")),
                "{routed:?} led to the pod, or nothing is named: {verdict:#}"
            ),
            other => return Err(anyhow!("a drain ended `{other}`: {verdict:#}")),
        }
        Ok(())
    }
}
