//! A sync: a snapshot at its start, the rules, and the stamp at its end.

use lastsyn::core::{clock::Monotonic, cluster::NodeTime, listener::Family};

use super::{
    super::{
        api::{Api, Content, MOST_SERVICES},
        fence::marker,
        node::{BOUNDS, Writing},
        routes::{HOME, View, ready_on_node, routes},
        timeline::name,
    },
    KubeProxy, ProxyEvent, Rules, Scene, place,
    proxier::{Proxier, Sync},
};

impl KubeProxy {
    /// As it is after everything has been synced long ago.
    pub(super) fn settle(&mut self, api: &Api, now: Monotonic) {
        let Some(feed) = &self.feed else { return };
        let view = View { slices: feed.have, services: self.services };
        for family in self.families {
            let route = routes(api, &view, *family, self.id, self.profile.copies, &mut self.chance);
            self.rules[place(*family)] = Rules { route, view, marker: 0 };
            let before = now - self.chance.ms(1000, 300_000);
            let stamp = Some(self.wall(before));
            self.proxiers[place(*family)] = Proxier { stamp, last_end: Some(before), ..Proxier::default() };
        }
        self.count_local(api, &view);
    }

    /// A time by the node's wall clock.
    pub(super) fn wall(&self, time: Monotonic) -> NodeTime {
        NodeTime(i128::from(time.as_nanos()) + self.profile.clock + self.clock_stepped)
    }

    /// The handlers have something new of a family.
    pub(super) fn changed(&mut self, family: Family, scene: &mut Scene<'_>) {
        let pending = &mut self.proxiers[place(family)].pending;
        *pending = pending.or(Some(scene.now));
        self.due(family, scene);
    }

    /// A sync is due.
    pub(super) fn due(&mut self, family: Family, scene: &mut Scene<'_>) {
        let proxier = &mut self.proxiers[place(family)];
        proxier.due = proxier.due.or(Some(scene.now));
        if proxier.sync.is_none() && !proxier.start_planned {
            proxier.start_planned = true;
            let ended = proxier.last_end.map_or(scene.now, |end| end + self.profile.min_interval);
            let start = scene.now.max(ended) + self.chance.ms(0, 5);
            self.plan(start, ProxyEvent::StartSync(family), scene);
        }
    }

    pub(super) fn start_sync(&mut self, family: Family, scene: &mut Scene<'_>) {
        let proxier = &mut self.proxiers[place(family)];
        proxier.start_planned = false;
        let (Some(feed), Some(due), None) = (&self.feed, proxier.due, proxier.sync) else { return };
        self.broken.min_sync |= scene.now.since(due.max(proxier.last_end.unwrap_or_default())) > BOUNDS.min_sync;
        proxier.due = None;
        let fails = self.failures > 0;
        self.failures = self.failures.saturating_sub(1);
        proxier.sync = Some(Sync {
            view: View { slices: feed.have, services: self.services },
            since: scene.now,
            fails,
            wrote_pod: false,
            wrote_marker: false,
        });
        let length = self.chance.between(self.profile.sync.0, self.profile.sync.1);
        if self.chance.one_in(2) {
            let part = self.chance.below(length);
            self.plan(scene.now + part, ProxyEvent::Write(family), scene);
        }
        self.plan(scene.now + length, ProxyEvent::EndSync(family), scene);
        let id = self.id;
        scene.timeline.note(scene.now, || format!("{}: a sync of {family} starts", name(id)));
    }

    /// What is written before the end: all of it, or one Service.
    pub(super) fn write_early(&mut self, family: Family, scene: &mut Scene<'_>) {
        let fails = self.proxiers[place(family)].sync.is_some_and(|sync| sync.fails);
        match self.profile.writing {
            Writing::AtOnce if fails => {}
            Writing::AtOnce => self.write(family, true, true, scene),
            Writing::ByService => {
                let pod = self.chance.one_in(2);
                self.write(family, pod, !pod, scene);
            }
        }
    }

    pub(super) fn write(&mut self, family: Family, pod: bool, of_marker: bool, scene: &mut Scene<'_>) {
        let Some(sync) = &mut self.proxiers[place(family)].sync else { return };
        let rules = &mut self.rules[place(family)];
        if pod && !std::mem::replace(&mut sync.wrote_pod, true) {
            let before = rules.route;
            rules.route = routes(scene.api, &sync.view, family, self.id, self.profile.copies, &mut self.chance);
            rules.view = sync.view;
            if rules.route != before {
                let (id, route) =
                    (self.id, if rules.route { "ROUTES to the pod" } else { "no longer routes to the pod" });
                scene.timeline.note(scene.now, || format!("{}: {family} {route}", name(id)));
            }
        }
        if of_marker && !std::mem::replace(&mut sync.wrote_marker, true) {
            rules.marker = marker_in(scene.api, &sync.view, family);
        }
    }

    /// Whether it routes to the pod by what had been written at a time: after so many writes of slices and Services.
    pub(in super::super) fn routes_as_of(&self, family: Family, written: [u32; 2], api: &Api) -> bool {
        let rules = self.rules(family);
        let view = rules.view.as_of(api, written);
        rules.route && routes(api, &view, family, self.id, self.profile.copies, &mut self.chance.clone())
    }

    pub(super) fn end_sync(&mut self, family: Family, scene: &mut Scene<'_>) {
        let Some(sync) = self.proxiers[place(family)].sync else { return };
        let id = self.id;
        self.broken.sync_time |= scene.now.since(sync.since) > BOUNDS.sync_time;
        if sync.fails {
            self.broken.no_failed_sync = true;
            let proxier = &mut self.proxiers[place(family)];
            proxier.sync = None;
            proxier.due = proxier.due.or(Some(scene.now));
            proxier.last_end = Some(scene.now);
            proxier.start_planned = true;
            self.plan(scene.now + self.profile.retry, ProxyEvent::StartSync(family), scene);
            scene.timeline.note(scene.now, || format!("{}: the sync of {family} fails", name(id)));
            return;
        }
        self.write(family, true, true, scene);
        let stamp = self.wall(scene.now);
        let proxier = &mut self.proxiers[place(family)];
        proxier.sync = None;
        proxier.last_end = Some(scene.now);
        proxier.stamp = Some(stamp);
        proxier.pending = None;
        proxier.port = marker_in(scene.api, &sync.view, family);
        let again = proxier.due.is_some();
        scene.timeline.note(scene.now, || format!("{}: the sync of {family} ends, and stamps", name(id)));
        if Some(family) == self.families.first().copied() {
            self.count_local(scene.api, &sync.view);
        }
        if again {
            self.due(family, scene);
        }
    }

    /// The stamp of the process' start, before it has synced anything.
    pub(super) fn stamp_start(&mut self, scene: &mut Scene<'_>) {
        let stamp = self.wall(scene.now);
        for family in self.families {
            let proxier = &mut self.proxiers[place(*family)];
            proxier.stamp = Some(stamp);
            proxier.pending = None;
        }
        let id = self.id;
        scene.timeline.note(scene.now, || format!("{}: kube-proxy stamps as it starts", name(id)));
    }

    fn count_local(&mut self, api: &Api, view: &View) {
        if self.id == HOME
            && let Some(family) = self.families.first()
        {
            self.local = [0, 1].map(|service| ready_on_node(api, view, service, *family, HOME));
            debug_assert_eq!(self.local.len(), MOST_SERVICES);
        }
    }
}

fn marker_in(api: &Api, view: &View, family: Family) -> u32 {
    match api.content(view.slices[marker(family).0]) {
        Some(Content::Marker(_, value)) => *value,
        _ => 0,
    }
}
