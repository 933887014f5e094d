//! Both ways side by side, in one cluster.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::side::{ACCOUNT, Scene, Side};
use crate::{
    clock::monotonic_now,
    kubernetes::{Cluster, ClusterConfig, Mode, Right, Shutdown},
    prove::wait_until,
    wait::await_condition,
};

/// Longer than the longest of both: the drain holds to its bound of 20 s.
const ENDS: Duration = Duration::from_mins(1);
/// Often enough for what is told in tenths of a second.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// How it is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The mode of the nodes.
    pub mode: Mode,
    /// Connections per second of each load balancer to each node, to each family in turn.
    pub per_second: u32,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Round {
    /// The pod that Envoy Gateway's sequence shut down.
    pub published: Side,
    /// The pod that the agent shut down.
    pub agent: Side,
}

// === impl Plan ===

impl Plan {
    /// Runs it, in a cluster of its own.
    ///
    /// # Errors
    ///
    /// When it does not go as planned. Lost connections are no error: they are the result.
    pub fn run(&self) -> Result<Round> {
        let config = ClusterConfig { mode: self.mode, kubelet: true, envoy: true, ..ClusterConfig::default() };
        let cluster = Cluster::with(&config)?;
        cluster.access(ACCOUNT, &Right::ALL)?;
        let mut scenes = Vec::new();
        for shutdown in Shutdown::ALL {
            scenes.push(Scene::new(&cluster, shutdown, self.per_second)?);
        }
        for scene in &mut scenes {
            scene.await_served()?;
        }
        for scene in &mut scenes {
            scene.delete()?;
        }
        await_condition("the ends of both pods", ENDS, || {
            let looked = scenes.iter_mut().map(Scene::look).collect::<Result<Vec<bool>>>();
            match looked.and_then(|gone| wait_until(monotonic_now(), BETWEEN_LOOKS).map(|()| gone)) {
                Ok(gone) => gone.into_iter().all(|gone| gone).then_some(Ok(())),
                Err(error) => Some(Err(error)),
            }
        })
        .and_then(|outcome| outcome)?;
        let mut sides = scenes.into_iter().map(Scene::end).collect::<Result<Vec<_>>>()?.into_iter();
        let (published, agent) = sides.next().zip(sides.next()).context("both sides")?;
        Ok(Round { published, agent })
    }
}

// === impl Round ===

impl Round {
    /// Checks that it shows the race: both load balancers went on sending for as long as they do; the published sequence had the
    /// pod not ready before its load balancer noticed, and lost connections by that; the agent's pod served what came then.
    ///
    /// # Errors
    ///
    /// Naming what was missing: such a round shows nothing.
    pub fn check(&self) -> Result<()> {
        let Self { published, agent } = self;
        published.check()?;
        agent.check()?;
        let failed = published.not_serving.context("the published sequence never failed readiness")?;
        ensure!(failed < published.sent_on, "readiness failed after {failed:?}, when nobody sent any more");
        ensure!(
            published.after_the_deletion().lost() > 0,
            "the published sequence lost nothing: {}",
            published.summary()
        );
        ensure!(agent.served_after(failed) > 0, "the agent's pod served nobody then: {}", agent.summary());
        ensure!(agent.verdict.is_some(), "the agent gave no verdict:\n{}", agent.log);
        Ok(())
    }

    /// The round in one object.
    pub fn to_json(&self, number: usize, plan: &Plan) -> Value {
        json!({
            "round": number, "mode": plan.mode.name(),
            "published": self.published.to_json(), "agent": self.agent.to_json(),
        })
    }
}
