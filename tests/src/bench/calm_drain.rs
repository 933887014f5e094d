//! How long a drain takes in a calm cluster: nothing but the withdrawal happens. The target is the bound of `settled`:
//! `watchLag` + 2·`syncTime` + `minSync` + 300 ms, 7.3 s with the defaults, as the median; with a fence 3 s. Beside them, in the
//! same cluster: what quiet alone decides, and what most use today, a hook that sleeps.

use std::{collections::BTreeMap, process::Command, thread, time::Duration};

use anyhow::{Result, anyhow, ensure};
use serde_json::json;

use super::{distribution::Distribution, report::Report};
use crate::{
    AgentConfig, Process,
    clock::monotonic_now,
    kubernetes::{ClusterConfig, Fence, Mode, Scene},
};

const DRAINS: usize = 30;
const HOOK: Duration = Duration::from_mins(1);
/// What a hook sleeps where nothing better is known, in seconds.
const SLEEP: &str = "30";

/// By what a drain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// What the nodes' health servers say.
    Settled,
    /// A fence.
    Fence,
    /// The last SYN alone: `routing.enabled: false`.
    QuietAlone,
}

/// What each drain of a mode took, and its reason.
type Drains = Vec<(i64, String)>;

const WAYS: [Way; 3] = [Way::Settled, Way::Fence, Way::QuietAlone];

pub(super) fn measure() -> Result<()> {
    // Side by side: a drain waits nearly all of its time.
    let (measured, slept) = thread::scope(|scope| {
        let sleeping = scope.spawn(sleeps);
        let running = Mode::ALL.map(|mode| scope.spawn(move || drains(mode)));
        let measured = running.map(|mode| mode.join().unwrap_or_else(|_panic| Err(anyhow!("a drain panicked"))));
        (measured, sleeping.join().unwrap_or_else(|_panic| Err(anyhow!("a sleep panicked"))))
    });
    let mut report = Report::default();
    let mut reasons = BTreeMap::<String, BTreeMap<&str, usize>>::new();
    for (mode, drains) in Mode::ALL.into_iter().zip(measured) {
        for (way, drains) in WAYS.into_iter().zip(drains?) {
            let name = name(mode, way);
            let mut took = Distribution::default();
            for (time, reason) in drains {
                took.add(time);
                *reasons.entry(reason).or_default().entry(name).or_default() += 1;
            }
            let with = match way {
                Way::Settled => "without a fence",
                Way::Fence => "with a fence",
                Way::QuietAlone => "by quiet alone",
            };
            let words = format!("from the Pod's deletion to the hook's end, {} mode, {with}", mode.name());
            report.row(name, words, took);
        }
    }
    report.row("sleep", format!("for comparison: a hook of `sleep {SLEEP}`"), slept?);
    let targets = json!({ "withoutFence": 7300, "withFence": 3000 });
    report.publish("calm-drain", &json!({ "targetMedianMs": targets, "reasons": reasons, "clock": "CLOCK_MONOTONIC" }))
}

fn name(mode: Mode, way: Way) -> &'static str {
    match (mode, way) {
        (Mode::Nftables, Way::Settled) => "nftables",
        (Mode::Nftables, Way::Fence) => "nftables-fence",
        (Mode::Nftables, Way::QuietAlone) => "nftables-quiet",
        (Mode::Iptables, Way::Settled) => "iptables",
        (Mode::Iptables, Way::Fence) => "iptables-fence",
        (Mode::Iptables, Way::QuietAlone) => "iptables-quiet",
    }
}

fn drains(mode: Mode) -> Result<Vec<Drains>> {
    let scene = Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service)?;
    let fence = Fence::start(&scene.cluster, 2, "fence", &scene.cluster.fence_access("fence")?)?;
    let of = |way| (0..DRAINS).map(|number| drain(&scene, way, &fence, number)).collect();
    WAYS.into_iter().map(of).collect()
}

fn drain(scene: &Scene, way: Way, fence: &Fence, number: usize) -> Result<(i64, String)> {
    let (name, config) = match way {
        Way::Settled => ("drains", AgentConfig::default()),
        Way::Fence => ("fenced", fence.give_to(AgentConfig::default())),
        Way::QuietAlone => ("quiet", AgentConfig::default().env("LASTSYN_ROUTING_ENABLED", "false")),
    };
    let workload = scene.workload(0, format!("{name}-{number}"), config)?;
    let stopping = workload.delete()?;
    let deleted_at = stopping.deleted_at;
    let ended = stopping.finish(HOOK)?;
    let calm = ended.by_evidence_or_wait() || way == Way::QuietAlone && ended.reason() == "quiet";
    ensure!(calm, "not calm: {}", ended.verdict);
    Ok((ended.at.saturating_sub(deleted_at).cast_signed(), ended.reason().to_owned()))
}

/// All at once, as they cost nothing.
fn sleeps() -> Result<Distribution> {
    let started: Vec<_> = (0..DRAINS)
        .map(|_| anyhow::Ok((monotonic_now(), Process::start("sleep", Command::new("sleep").arg(SLEEP))?)))
        .collect::<Result<_>>()?;
    let mut took = Distribution::default();
    for (started_at, sleep) in started {
        sleep.wait_for_success(HOOK)?;
        took.add(monotonic_now().saturating_sub(started_at).cast_signed());
    }
    Ok(took)
}
