//! What is on the stage: two pods with a real `HAProxy` each, the agent beside the first, and the client.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use super::{
    scenario::{PACE, Plan, STORM_PACE, Scenario},
    storm::Storm,
};
use crate::{Agent, AgentConfig, Bind, HaProxy, PacedClient, World, WorldConfig};

/// The ports that the pods listen on.
const PORTS: [u16; 2] = [80, 8080];
/// The length of the queues of the pod in the storm. The kernel's own default was this for most of its life, and many
/// images still run with it; today's 4096 would take seconds to fill.
const STORM_BACKLOG: &str = "128";

/// The stage. Dropped, it is torn down: the client first, the hosts last.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) client: PacedClient,
    pub(super) storm: Option<Storm>,
    pub(super) agent: Agent,
    pub(super) haproxy_a: HaProxy,
    _haproxy_b: HaProxy,
    pub(super) world: World,
}

// === impl Scene ===

impl Scene {
    /// Sets it up. The client connects from then on.
    ///
    /// # Errors
    ///
    /// When a part is missing or does not start; the message says what to do.
    pub(super) fn make(plan: &Plan) -> Result<Self> {
        let world = World::with(WorldConfig { ports: PORTS.to_vec(), ..WorldConfig::default() })?;
        if plan.scenario == Scenario::Storm {
            world.pod_a.set_sysctl("net.core.somaxconn", STORM_BACKLOG)?;
        }
        let haproxy_a = HaProxy::start_with(&world.pod_a, "a", &PORTS, Bind::Dual)?;
        let haproxy_b = HaProxy::start_with(&world.pod_b, "b", &PORTS, Bind::Dual)?;
        let agent = Agent::start(&world.pod_a, AgentConfig::default()).context("the agent did not start")?;
        let targets: Vec<SocketAddr> = PORTS.iter().flat_map(|port| world.targets(*port)).collect();
        let storm = (plan.scenario == Scenario::Storm)
            .then(|| Storm::start(&world, targets.clone(), STORM_PACE))
            .transpose()?;
        let client = PacedClient::start(&world.client, targets, PACE)?;
        Ok(Self { client, storm, agent, haproxy_a, _haproxy_b: haproxy_b, world })
    }
}
