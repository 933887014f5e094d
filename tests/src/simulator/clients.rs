//! Clients that connect over the nodes' rules, and what becomes of their SYNs.

use std::time::Duration;

use lastsyn::core::{clock::Monotonic, cluster::ClusterEvent, listener::Family};

use super::{
    chance::{Chance, Stream},
    check::{self, Failure},
    node::NodeId,
    pod::Fate,
    schedule::{Event, PodEvent},
    timeline::name,
    translate,
    world::World,
};

/// Linux sends a SYN again after 1, 2 and 4 s; what comes later `retryWait` does not wait for.
const TRIES: u8 = 3;

/// The clients.
#[derive(Debug)]
pub(super) struct Clients {
    chance: Chance,
    /// Those whose SYN was dropped.
    dropped: Vec<Client>,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    node: NodeId,
    family: Family,
    /// Its last SYN was dropped then, and it will try again.
    waits_since: Option<Monotonic>,
}

impl Clients {
    pub(super) fn new(seed: u64) -> Self {
        Self { chance: Chance::of(seed, Stream::Clients), dropped: Vec::new() }
    }

    /// Whether a client whose SYN was dropped by this time will try again.
    pub(super) fn will_try_again(&self, dropped_by: Monotonic) -> bool {
        self.dropped.iter().any(|client| client.waits_since.is_some_and(|since| since <= dropped_by))
    }
}

impl World<'_> {
    pub(super) fn start_clients(&mut self) {
        self.plan_client();
        for connection in 0..self.pod.established {
            let closes = self.now + Duration::from_millis(400 * connection) + self.clients.chance.ms(0, 9000);
            self.schedule.add(closes, Event::Pod(PodEvent::Close));
        }
        if let Some(balancer) = &self.balancer {
            self.schedule.add(self.now + balancer.period, Event::Balancer);
        }
    }

    fn plan_client(&mut self) {
        if let Some(mean) = self.pod.traffic.mean {
            let next = self.now + self.clients.chance.waiting(mean, mean * 10);
            self.schedule.add(next, Event::Pod(PodEvent::Client));
        }
    }

    pub(super) fn pod_does(&mut self, event: PodEvent) {
        match event {
            PodEvent::Client => {
                self.client();
                self.plan_client();
            }
            PodEvent::Again(client, tries) => self.again(client, tries),
            PodEvent::Complete(handshake) => {
                if self.pod.complete(handshake) {
                    let taken = self.now + self.clients.chance.ms(0, 20);
                    self.schedule.add(taken, Event::Pod(PodEvent::Accept));
                }
            }
            PodEvent::Accept => {
                self.pod.accept();
                self.plan_close();
            }
            PodEvent::Close => self.pod.close(),
        }
    }

    /// Somebody connects, over some node.
    pub(super) fn client(&mut self) {
        let node = NodeId(self.clients.chance.index(self.proxies.len()));
        let family = self.clients.chance.pick(self.plan.families);
        let share = self.controller.taking().max(1);
        if self.rules(node, family).route && self.clients.chance.index(share) == 0 {
            self.syn(node, family, None, 0);
        }
    }

    fn again(&mut self, client: u32, tries: u8) {
        let Client { node, family, .. } = self.clients.dropped[client as usize];
        self.clients.dropped[client as usize].waits_since = None;
        self.syn(node, family, Some(client), tries);
    }

    fn syn(&mut self, node: NodeId, family: Family, client: Option<u32>, tries: u8) {
        let fate = self.pod.syn(family, self.now);
        self.timeline.note(self.now, || {
            let again = if client.is_some() { " again" } else { "" };
            format!("pod: a {family} SYN comes{again} over {}: {fate:?}", name(node))
        });
        match fate {
            Fate::Refused if self.failure.is_none() && check::is_broken_by(self, node, family) => {
                let what = format!("after the end a client of {} is refused", name(node));
                self.failure = Some(Failure::new(&what));
            }
            Fate::Refused => {}
            Fate::Dropped => self.dropped(node, family, client, tries),
            Fate::Answered(handshake, length) => {
                if let Some(length) = length {
                    self.schedule.add(self.now + length, Event::Pod(PodEvent::Complete(handshake)));
                }
            }
            Fate::Taken => self.plan_close(),
            Fate::Waits(length) => self.schedule.add(self.now + length, Event::Pod(PodEvent::Accept)),
        }
        if self.plan.agent.masqueraded && self.ended.is_none() {
            let (node, at) = (translate::node_name(node), self.now);
            self.tell(ClusterEvent::AttemptThrough { node, family, at });
        }
    }

    fn dropped(&mut self, node: NodeId, family: Family, client: Option<u32>, tries: u8) {
        if tries >= TRIES {
            return;
        }
        let waits_since = Some(self.now);
        let client = client.unwrap_or_else(|| {
            self.clients.dropped.push(Client { node, family, waits_since });
            super::api::count(self.clients.dropped.len()) - 1
        });
        self.clients.dropped[client as usize].waits_since = waits_since;
        let next = self.now + Duration::from_secs(1 << tries);
        self.schedule.add(next, Event::Pod(PodEvent::Again(client, tries + 1)));
    }

    fn plan_close(&mut self) {
        if self.plan.agent.exit_at_connections.is_some() {
            let closes = self.now + self.clients.chance.waiting(Duration::from_secs(2), Duration::from_secs(20));
            self.schedule.add(closes, Event::Pod(PodEvent::Close));
        }
    }
}
