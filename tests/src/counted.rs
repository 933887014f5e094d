//! A pod whose agent counts, and what single packets are counted as.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, ensure};

use crate::{
    Agent, AgentConfig, Pair,
    agent::{Counts, counts},
    pair::INTERFACE,
    raw::{Segment, Sender},
};

/// The watched port.
pub const PORT: u16 = 80;

/// A client and a pod on one wire, and an agent in the pod that watches [`PORT`].
#[derive(Debug)]
pub struct Counted {
    /// Client and pod.
    pub pair: Pair,
    /// The agent in the pod.
    pub agent: Agent,
    /// Sends frames from the client.
    pub sender: Sender,
}

// === impl Counted ===

impl Counted {
    /// The scene, with the agent's sensor in place.
    ///
    /// # Errors
    ///
    /// When the scene cannot be made, or the agent has no sensor.
    pub fn start() -> Result<Self> {
        Self::with(Pair::new()?, AgentConfig::default())
    }

    /// The same in a scene that is there, with further configuration.
    ///
    /// # Errors
    ///
    /// When the agent does not start, or has no sensor.
    pub fn with(pair: Pair, config: AgentConfig) -> Result<Self> {
        let agent = Agent::start(&pair.pod, config.env("LASTSYN_LISTENERS_WATCH", PORT.to_string()))?;
        let status = agent.status_of_now()?;
        let healthy = status.pointer("/sensor/healthy") == Some(&true.into());
        ensure!(healthy, "the agent has no sensor: {status}");
        let sender = Sender::open(&pair.client, INTERFACE)?;
        Ok(Self { pair, agent, sender })
    }

    /// What was counted since the agent started, IPv4 first.
    ///
    /// # Errors
    ///
    /// When the agent does not say.
    pub fn so_far(&self) -> Result<[Counts; 2]> {
        let status = self.agent.status_of_now()?;
        let of = |family| counts(&status, PORT, family).with_context(|| format!("{family} is not counted: {status}"));
        Ok([of("IPv4")?, of("IPv6")?])
    }

    /// What is counted of what `work` does, IPv4 first.
    ///
    /// # Errors
    ///
    /// When it fails, or the agent does not say.
    pub fn of(&self, work: impl FnOnce() -> Result<()>) -> Result<[Counts; 2]> {
        let before = self.so_far()?;
        work()?;
        let after = self.so_far()?;
        Ok([0, 1].map(|family: usize| {
            let at = |counts: &[Counts; 2]| counts.get(family).copied().unwrap_or_default();
            at(&after).since(at(&before))
        }))
    }

    /// What frames are counted as when the client sends them one after the other.
    ///
    /// # Errors
    ///
    /// When one cannot be sent, or the agent does not say.
    pub fn frames(&self, frames: &[Vec<u8>]) -> Result<[Counts; 2]> {
        self.of(|| frames.iter().try_for_each(|frame| self.sender.send_frame(frame)))
    }

    /// The same for segments.
    ///
    /// # Errors
    ///
    /// When one cannot be sent, or the agent does not say.
    pub fn segments(&self, segments: &[Segment]) -> Result<[Counts; 2]> {
        self.frames(&segments.iter().map(Segment::to_frame).collect::<Vec<_>>())
    }

    /// SYNs over IPv4 and IPv6 from a stranger with this port, which stay half-open.
    pub fn syns(&self, from_port: u16) -> [Segment; 2] {
        let strangers: [IpAddr; 2] = [[198, 51, 100, 7].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 7].into()];
        let targets: [IpAddr; 2] = [crate::pair::POD_V4.into(), crate::pair::POD_V6.into()];
        let [v4, v6] = [0, 1].map(|family: usize| {
            let at = |addresses: &[IpAddr; 2]| addresses.get(family).copied().unwrap_or(targets[0]);
            self.pair.syn(SocketAddr::new(at(&strangers), from_port), SocketAddr::new(at(&targets), PORT))
        });
        [v4, v6]
    }
}
