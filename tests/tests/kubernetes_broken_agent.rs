//! What a broken agent does to its pod, on a real kubelet: the server serves on and the pod's end waits for no more than its hook's
//! own bound. Whether the pod is *ready* is Kubernetes' to say, and it says no while any of its containers does not run
//! (docs/servers.md); whether it *starts* as well. A rollout to such an agent stops at its first pod, with the old ones in place.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    PacedClient, Summary, await_condition,
    kubernetes::{
        ABSENT_IMAGE, Cluster, ClusterConfig, Deployment, Fault, Form, KubeletPod, PORT, Right, ServiceSpec, Standing,
    },
    monotonic_now,
    prove::wait_until,
};
use serde_json::{Value, json};

const START: Duration = Duration::from_mins(1);
/// Two starts of the agent, and what a kubelet waits between them.
const COURSE: Duration = Duration::from_mins(2);
const HOLD: Duration = Duration::from_secs(4);
const HOLD_SECONDS: u32 = 4;
/// From the deletion until the pod has gone: far less than its grace period of 300 s.
const END: Duration = Duration::from_mins(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
const PER_SECOND: u32 = 20;

/// The agents of the pods: one without, and those that break while their server runs.
const PODS: [(&str, Option<(Form, Fault)>); 6] = [
    ("none", None),
    ("sidecar-ends", Some((Form::NativeSidecar, Fault::Ends))),
    ("sidecar-out-of-memory", Some((Form::NativeSidecar, Fault::OutOfMemory))),
    ("container-ends", Some((Form::Container, Fault::Ends))),
    ("container-out-of-memory", Some((Form::Container, Fault::OutOfMemory))),
    ("container-no-image", Some((Form::Container, Fault::NoImage))),
];

struct Patient<'a> {
    pod: KubeletPod<'a>,
    fault: Option<Fault>,
    client: PacedClient,
    /// The pod was ready with an agent that had been started again.
    recovered: bool,
    deleted_at: Option<u64>,
    gone: bool,
}

fn is_past(since: u64, length: Duration) -> bool {
    Duration::from_nanos(monotonic_now().saturating_sub(since)) >= length
}

impl Patient<'_> {
    fn look(&mut self) -> Result<()> {
        let name = self.pod.name();
        let object = self.pod.object()?;
        match (self.deleted_at, object) {
            (None, Some(object)) => {
                let standing = Standing::of(&object);
                ensure!(standing.server.is_running && standing.server.restarts == 0, "{name}: {standing:?}");
                self.recovered |= standing.is_ready && standing.agent.is_running && standing.agent.restarts > 0;
                if self.is_to_be_deleted(&standing)? {
                    self.deleted_at = Some(monotonic_now());
                    self.pod.delete()?;
                }
            }
            (None, None) => anyhow::bail!("{name} has gone, and nobody deleted it"),
            (Some(deleted_at), object) => {
                // What is tried later may meet a server that has been stopped.
                if is_past(deleted_at, HOLD) {
                    self.client.set_pace(0);
                }
                self.gone = object.is_none();
                ensure!(self.gone || !is_past(deleted_at, END), "{name} is there {END:?} after its deletion");
            }
        }
        Ok(())
    }

    /// While the agent does not run: after it came up again once, where it ever does.
    fn is_to_be_deleted(&self, standing: &Standing) -> Result<bool> {
        let (name, agent) = (self.pod.name(), &standing.agent);
        let served = self.client.so_far().served_by(name) >= 2 * u64::from(PER_SECOND);
        let Some(fault) = self.fault else {
            return Ok(served && standing.is_ready);
        };
        if agent.is_running || !standing.server.is_ready {
            return Ok(false);
        }
        // As Kubernetes has it: a pod is ready if all its containers are.
        ensure!(
            !standing.is_ready,
            "{name} is ready without an agent, which the documentation says it is not: {standing:?}"
        );
        Ok(served
            && match fault {
                Fault::NoImage => agent.waits.as_deref() == Some("ErrImageNeverPull"),
                Fault::Ends => self.recovered && agent.ended.as_deref() == Some("Error"),
                Fault::OutOfMemory => self.recovered && agent.ended.as_deref() == Some("OOMKilled"),
            })
    }

    /// What it served before its hook may have let go.
    fn finish(self) -> Result<(String, Summary)> {
        let name = self.pod.name().to_owned();
        let deleted_at = self.deleted_at.context("it was never deleted")?;
        let hold = if self.fault.is_some() { HOLD } else { Duration::ZERO };
        let until = deleted_at + u64::try_from(hold.as_nanos())?;
        let attempts = self.client.stop()?;
        Ok((name, Summary::of(attempts.iter().filter(|attempt| attempt.tried_at < until))))
    }
}

fn addresses(pod: &KubeletPod<'_>) -> Result<Vec<SocketAddr>> {
    let object = pod.object()?.context("the pod has gone")?;
    let list = object.pointer("/status/podIPs").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|one| one.get("ip")?.as_str()).map(|ip| Ok(SocketAddr::new(ip.parse()?, PORT))).collect()
}

#[test]
fn an_agent_that_breaks_neither_stops_its_server_nor_delays_the_end_beyond_the_hooks_bound() -> Result<()> {
    let cluster = Cluster::with(&ClusterConfig { kubelet: true, ..ClusterConfig::default() })?;
    cluster.access("agent", &Right::ALL)?;
    let mut pods = Vec::new();
    for (name, broken) in PODS {
        let pod = match broken {
            Some(broken) => KubeletPod::with_broken_agent(&cluster, name, broken, HOLD_SECONDS)?,
            None => KubeletPod::without_agent(&cluster, name)?,
        };
        pods.push((pod, broken.map(|(_, fault)| fault)));
    }
    let mut patients = Vec::new();
    for (pod, fault) in pods {
        pod.await_ready(1, START)?;
        let client = PacedClient::start_served(cluster.node(pod.node())?.host(), addresses(&pod)?, PER_SECOND)?;
        patients.push(Patient { pod, fault, client, recovered: false, deleted_at: None, gone: false });
    }
    await_condition("the ends of all pods", COURSE, || {
        let looked = patients.iter_mut().filter(|patient| !patient.gone).try_for_each(Patient::look);
        match looked.and_then(|()| wait_until(monotonic_now(), BETWEEN_LOOKS)) {
            Ok(()) => patients.iter().all(|patient| patient.gone).then_some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    })
    .with_context(|| {
        let standings = patients.iter().map(|one| format!("{}: {:?}\n", one.pod.name(), one.pod.standing()));
        standings.collect::<String>()
    })
    .and_then(|outcome| outcome)?;
    for patient in patients {
        let (name, summary) = patient.finish()?;
        ensure!(summary.lost() == 0 && summary.served_by(&name) > 0, "{name}: {summary}");
    }
    // A hook that ends otherwise than well is told as an event.
    let events = cluster.api().get("/api/v1/namespaces/default/events?fieldSelector=reason%3DFailedPreStopHook")?;
    ensure!(events["items"].as_array().is_some_and(Vec::is_empty), "{events:#}");
    Ok(())
}

/// A native sidecar that cannot start keeps its server from starting, by the rules of Kubernetes: a new pod never serves. The old
/// one does, and goes on to.
#[test]
fn a_rollout_to_an_agent_without_an_image_leaves_the_old_pod_in_place() -> Result<()> {
    let cluster = Cluster::with(&ClusterConfig { kubelet: true, ..ClusterConfig::default() })?;
    cluster.access("agent", &Right::ALL)?;
    let service = cluster.service(&ServiceSpec::new("web", "web", PORT))?;
    let deployment = Deployment::create(&cluster, "web", "agent", true)?;
    let (old, _) = deployment.only_pod()?;
    let clients = cluster
        .nodes()
        .iter()
        .map(|node| PacedClient::start_served(node.host(), service.cluster().to_vec(), PER_SECOND))
        .collect::<Result<Vec<_>>>()?;
    let image = deployment.replace_agent_image(ABSENT_IMAGE)?;
    let stuck = await_condition("a new pod whose agent has no image", START, || {
        let pods = deployment.pods().ok()?;
        let stuck = pods.iter().find(|pod| pod["metadata"]["name"] != json!(old))?;
        let standing = Standing::of(stuck);
        let is_stuck = standing.agent.waits.as_deref() == Some("ErrImageNeverPull");
        is_stuck.then(|| (stuck["metadata"]["name"].clone(), standing))
    })?;
    ensure!(stuck.1.server.waits.as_deref() == Some("PodInitializing") && !stuck.1.is_ready, "{stuck:?}");
    // It stays so for as long as anybody looks: a kubelet tries again every few seconds.
    wait_until(monotonic_now(), Duration::from_secs(5))?;
    let pods = deployment.pods()?;
    let of = |name: &Value| pods.iter().find(|pod| pod["metadata"]["name"] == *name).map(Standing::of);
    ensure!(of(&json!(old)).is_some_and(|standing| standing.is_ready), "{pods:#?}");
    ensure!(of(&stuck.0).is_some_and(|standing| !standing.server.is_running && !standing.is_ready), "{pods:#?}");

    // Taken back, nothing is left of it but the old pod.
    deployment.replace_agent_image(&image)?;
    await_condition("the old pod alone", START, || deployment.only_pod().is_ok_and(|(name, _)| name == old))?;
    let attempts = clients.into_iter().map(PacedClient::stop).collect::<Result<Vec<_>>>()?.concat();
    let summary = Summary::of(&attempts);
    ensure!(summary.lost() == 0 && summary.served_by(&old) == summary.tried, "{summary}");
    Ok(())
}
