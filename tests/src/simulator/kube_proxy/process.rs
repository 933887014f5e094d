//! The life of a process: it dies, starts, lists, is frozen, and is cut off from the API server.

use std::time::Duration;

use super::{
    super::{
        api::MOST_SERVICES,
        node::{BOUNDS, FirstList},
        schedule::Event,
        timeline::name,
    },
    Feed, KubeProxy, ProxyEvent, Rules, Scene,
    proxier::Proxier,
};

impl KubeProxy {
    /// It dies; the rules stay. What a sync under way had still to write may have been written. It is started again after
    /// `down`.
    pub(in super::super) fn die(&mut self, down: Duration, written: bool, scene: &mut Scene<'_>) {
        if !self.up {
            return;
        }
        if written {
            for family in self.families {
                self.write(*family, true, true, scene);
            }
        }
        self.broken = self.broken(scene.api, scene.now);
        self.up = false;
        self.feed = None;
        self.relists = false;
        self.proxiers = [Proxier::default(); 2];
        self.local = [0; MOST_SERVICES];
        scene.schedule.add(scene.now + down, Event::StartProxy(self.id));
        let id = self.id;
        scene.timeline.note(scene.now, || format!("{}: kube-proxy dies; its rules stay", name(id)));
    }

    /// Another process starts.
    pub(in super::super) fn start(&mut self, scene: &mut Scene<'_>) {
        if self.up || self.gone {
            return;
        }
        self.up = true;
        self.process += 1;
        self.started = scene.now;
        self.frozen_until = scene.now;
        let stamped = scene.now + self.chance.ms(0, 300);
        let patience =
            if self.profile.first_list == FirstList::BeforeStart && self.chance.one_in(3) { 6000 } else { 900 };
        let listed = stamped + self.chance.ms(1, patience);
        self.plan(stamped, ProxyEvent::Stamp, scene);
        self.plan(listed, ProxyEvent::FirstList, scene);
        self.plan_unrelated(scene);
        let (id, process) = (self.id, self.process);
        scene.timeline.note(scene.now, || format!("{}: kube-proxy starts (process {process})", name(id)));
    }

    /// Whether the machine is gone.
    pub(in super::super) fn has_left(&self) -> bool {
        self.gone
    }

    /// Nothing of it runs for a while; what its health server is sent waits.
    pub(in super::super) fn freeze(&mut self, length: Duration, scene: &mut Scene<'_>) {
        self.frozen_until = self.frozen_until.max(scene.now + length);
        let id = self.id;
        scene.timeline.note(scene.now, || format!("{}: kube-proxy stands still for {length:?}", name(id)));
    }

    /// Whether it stands still.
    pub(in super::super) fn is_frozen(&self, now: lastsyn::core::clock::Monotonic) -> bool {
        now < self.frozen_until
    }

    /// Nothing comes from the API server for a while; then the watch goes on, or a list replaces it.
    pub(in super::super) fn cut(&mut self, length: Duration, relists: bool, scene: &mut Scene<'_>) {
        self.cut_until = self.cut_until.max(scene.now + length);
        self.relists |= relists && self.feed.is_some();
        let id = self.id;
        scene.timeline.note(scene.now, || format!("{}: kube-proxy's watch brings nothing for {length:?}", name(id)));
    }

    /// Its next syncs fail.
    pub(in super::super) fn fail(&mut self, syncs: u32) {
        self.failures += syncs;
    }

    /// The node's wall clock is set.
    pub(in super::super) fn step_clock(&mut self, nanos: i128, scene: &mut Scene<'_>) {
        self.clock_stepped += nanos;
        let id = self.id;
        scene.timeline.note(scene.now, || format!("{}: the wall clock is set by {} ms", name(id), nanos / 1_000_000));
    }

    pub(super) fn first_list(&mut self, scene: &mut Scene<'_>) {
        if self.feed.is_some() {
            return;
        }
        if scene.now < self.cut_until {
            self.plan(self.cut_until, ProxyEvent::FirstList, scene);
            return;
        }
        let (slices_at, services_at) = (self.listed_at(scene.now), self.listed_at(scene.now));
        let received = scene.api.written_by(slices_at);
        self.services = scene.api.services_by(services_at);
        self.feed = Some(Feed::listed(self.profile.queue, received, scene.api));
        let id = self.id;
        let age = scene.now.since(slices_at);
        scene.timeline.note(scene.now, || format!("{}: kube-proxy has its first list, {age:?} old", name(id)));
        let slices = scene.api.slices.get(received as usize..).unwrap_or_default();
        let services = scene.api.services.get(self.services as usize..).unwrap_or_default();
        let late = slices
            .iter()
            .map(|write| (write.at, ProxyEvent::ReceiveSlice))
            .chain(services.iter().map(|write| (write.at, ProxyEvent::ReceiveService)));
        for (written, event) in late {
            // The watch that follows the list owes what `watchLag` says, where that is kept.
            let left = (written + BOUNDS.watch_lag).since(scene.now);
            let limit = if left.is_zero() { self.profile.lag.1 } else { left.min(self.profile.lag.1) };
            let lag = self.chance.waiting(self.profile.lag.0, limit);
            self.broken.watch_lag |= left.is_zero();
            self.plan(scene.now + lag, event, scene);
        }
        for family in self.families {
            self.due(*family, scene);
        }
    }

    /// The machine is gone, with its rules.
    pub(in super::super) fn leave(&mut self) {
        self.up = false;
        self.gone = true;
        self.rules = [Rules::default(); 2];
    }
}
