//! A load balancer that asks the pod's node for its local endpoints, and sends to it until it has found it failing.

use std::time::Duration;

use super::{
    chance::{Chance, Stream},
    schedule::Event,
    world::World,
};

/// So many answers in a row make a node failing.
pub(super) const FAILURES: u32 = 2;

/// The load balancer.
#[derive(Debug)]
pub(super) struct Balancer {
    chance: Chance,
    pub(super) period: Duration,
    failures: u32,
}

impl Balancer {
    pub(super) fn new(seed: u64, period: Duration) -> Self {
        Self { chance: Chance::of(seed, Stream::Balancer), period, failures: 0 }
    }

    /// Whether it still sends to the node.
    pub(super) fn sends(&self) -> bool {
        self.failures < FAILURES
    }
}

impl World<'_> {
    pub(super) fn balance(&mut self) {
        let Some(balancer) = &mut self.balancer else { return };
        let home = &self.proxies[0];
        let passes = home.up && !home.is_frozen(self.now) && home.local_endpoints(0) > 0;
        let sent = balancer.sends();
        balancer.failures = if passes { 0 } else { balancer.failures.saturating_add(1) };
        if sent != balancer.sends() {
            let to = if sent { "no longer sends" } else { "sends again" };
            self.timeline.note(self.now, || format!("load balancer: {to} to the pod's node"));
        }
        let next = self.now + balancer.period + balancer.chance.ms(0, 20);
        self.schedule.add(next, Event::Balancer);
    }
}
