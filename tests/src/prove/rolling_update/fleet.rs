//! The pods of the Service, old and new.

use std::{thread, time::Duration};

use anyhow::{Result, anyhow, ensure};

use crate::{
    AgentConfig, Server,
    clock::monotonic_now,
    kubernetes::{Amount, ApiTraffic, Cluster, Ended, KubePod, Scene, Workload},
};

/// From an agent's start until it has read its pod, on a machine that is busy with its siblings.
const START: Duration = Duration::from_secs(30);
/// Longer than the longest drain.
const HOOK: Duration = Duration::from_mins(1);

/// A pod that is to be replaced.
pub(super) struct Old {
    workload: Workload,
    traffic: ApiTraffic,
    rest: Amount,
    rests_since: u64,
}

/// What came of one.
#[derive(Clone, Debug)]
pub struct Drained {
    /// How its hook ended.
    pub ended: Ended,
    /// What its agent exchanged with the API server while no drain ran.
    pub at_rest: Amount,
    /// For how long that was counted.
    pub rested: Duration,
    /// The same for the drain.
    pub in_drain: Amount,
}

/// What replaces them.
pub(super) type New = (KubePod, Server);

impl Old {
    fn start(scene: &Scene, number: usize) -> Result<Self> {
        let nodes = scene.cluster.nodes().len();
        let workload = scene.start(number % nodes, format!("old-{number}"), AgentConfig::default())?;
        let traffic = ApiTraffic::count(workload.pod.host())?;
        Ok(Self { workload, traffic, rest: Amount::default(), rests_since: 0 })
    }

    /// From here on it is at rest.
    fn rest(&mut self, cluster: &Cluster) -> Result<()> {
        self.workload.agent.process().wait_for_line("the pod has been read", START)?;
        self.workload.await_no_api_connection(cluster, START)?;
        self.rest = self.traffic.so_far()?;
        self.rests_since = monotonic_now();
        Ok(())
    }

    /// Deletes it, and ends it when its hook has.
    pub(super) fn drain(self) -> Result<Drained> {
        let (before, until) = (self.traffic.so_far()?, monotonic_now());
        let ended = self.workload.delete()?.finish(HOOK)?;
        Ok(Drained {
            ended,
            at_rest: before - self.rest,
            rested: Duration::from_nanos(until.saturating_sub(self.rests_since)),
            in_drain: self.traffic.so_far()? - before,
        })
    }
}

/// Starts so many, and waits until every node's rules lead to them.
pub(super) fn start_old(scene: &Scene, count: usize) -> Result<Vec<Old>> {
    let mut all = side_by_side(scene.cluster.nodes().len(), count, |number| Old::start(scene, number))?;
    for old in &mut all {
        scene.await_routes(&old.workload.pod)?;
        old.rest(&scene.cluster)?;
    }
    Ok(all)
}

/// Starts those of a wave, which are ready when this returns.
pub(super) fn start_new(scene: &Scene, numbers: std::ops::Range<usize>) -> Result<Vec<New>> {
    let nodes = scene.cluster.nodes().len();
    let first = numbers.start;
    side_by_side(nodes, numbers.len(), |number| {
        let number = first + number;
        scene.peer(number % nodes, &format!("new-{number}"))
    })
}

/// Does something `count` times, `lanes` at once, in the order of the numbers within each.
fn side_by_side<T: Send>(lanes: usize, count: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    ensure!(lanes > 0, "nothing can be done in no lane");
    let work = &work;
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes)
            .map(|lane| scope.spawn(move || (lane..count).step_by(lanes).map(work).collect::<Result<Vec<_>>>()))
            .collect();
        let mut all = Vec::new();
        for lane in lanes {
            all.extend(lane.join().unwrap_or_else(|_panic| Err(anyhow!("a lane panicked")))?);
        }
        Ok(all)
    })
}
