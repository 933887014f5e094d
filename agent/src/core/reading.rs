//! Asking for the kernel's evidence, and taking it in.

use super::{
    clock::Monotonic,
    drain::Core,
    event::{Action, Depth, Evidence, SensorState, Sockets},
    journal::Transition,
};

/// A reading that was asked for and has not come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    depth: Depth,
    at: Monotonic,
}

impl Asked {
    /// Whether this is the reading that was asked for, or as good as it.
    fn answered_by(self, evidence: &Evidence) -> bool {
        let depth = evidence.sockets.as_ref().map_or(Depth::Connections, Sockets::depth);
        evidence.taken_at >= self.at && depth >= self.depth
    }
}

impl Core {
    /// Asks for a reading, unless it has been asked for.
    pub(super) fn read(&mut self, depth: Depth, now: Monotonic) {
        if self.reading.is_none_or(|asked| asked.depth < depth) {
            self.read_anew(depth, now);
        }
    }

    /// Asks for a reading that begins now: one that was asked for may have begun before.
    pub(super) fn read_anew(&mut self, depth: Depth, now: Monotonic) {
        let depth = self.reading.map_or(depth, |asked| asked.depth.max(depth));
        self.reading = Some(Asked { depth, at: now });
        self.actions.retain(|action| !matches!(action, Action::Read(_)));
        self.actions.push_back(Action::Read(depth));
    }

    pub(super) fn take_evidence(&mut self, mut evidence: Evidence, now: Monotonic) {
        if self.evidence.as_ref().is_some_and(|newer| newer.taken_at > evidence.taken_at) {
            if let Some(asked) = self.reading.filter(|asked| asked.answered_by(&evidence)) {
                // Nothing else will answer it.
                self.reading = None;
                self.read_anew(asked.depth, now);
            }
            return;
        }
        if self.reading.is_some_and(|asked| asked.answered_by(&evidence)) {
            self.reading = None;
        }
        self.note_changes(&evidence);
        let unwatched = self.watched.update(&evidence, &self.settings.watch, self.drain.is_some(), &mut self.journal);
        self.keep_families(&mut evidence);
        let blind = self.judge_sensor(&evidence);
        let trusted = !blind && self.trusts_sensor(&evidence);
        if let Some(growth) = self.counters.update(&evidence, &self.watched, trusted) {
            if growth.dropped > 0 {
                self.journal.record(evidence.taken_at, Transition::SynsDropped(growth.dropped));
            }
            self.retry.update(growth, self.settings.retry_wait);
            self.handshakes.note_cookies(growth);
        }
        self.handshakes.update(&evidence);
        if let Some(after_end) = &mut self.after_end {
            after_end.update(&evidence, &self.watched);
        }
        self.evidence = Some(evidence);
        self.received = now;
        let news = !unwatched.is_empty();
        self.actions.extend(unwatched.into_iter().map(Action::Watch));
        if news && self.drain.is_some() {
            self.read_anew(Depth::Listeners, now);
        }
    }

    /// Whether the sensor is known to see everything (S3).
    pub(super) fn trusts_sensor(&self, evidence: &Evidence) -> bool {
        let blind = self.drain.as_ref().is_some_and(|drain| drain.blind.is_some());
        !blind && matches!(evidence.sensor, SensorState::Proven { .. })
    }

    /// S3. Whether the sensor has just been found blind.
    fn judge_sensor(&mut self, evidence: &Evidence) -> bool {
        let surplus = self.witness.surplus(evidence);
        if let Some(surplus) = surplus {
            self.journal.record(evidence.taken_at, Transition::SensorBlind(surplus));
            self.witness.start_anew();
        }
        if let Some(drain) = self.drain.as_mut().filter(|drain| evidence.taken_at >= drain.started) {
            drain.note_sensor(surplus, evidence);
        }
        surplus.is_some()
    }

    /// An address that goes away in a drain leaves its family asked about, as a listener that closes stays watched.
    fn keep_families(&self, evidence: &mut Evidence) {
        let started = self.drain.as_ref().map(|drain| drain.started);
        if let (Some(started), Some(before)) = (started, &self.evidence)
            && before.taken_at >= started
        {
            evidence.families.v4 |= before.families.v4;
            evidence.families.v6 |= before.families.v6;
        }
    }

    fn note_changes(&mut self, evidence: &Evidence) {
        let before = self.evidence.as_ref();
        if before.is_none_or(|before| before.sensor != evidence.sensor) {
            let what = match &evidence.sensor {
                SensorState::Proven { strategy, .. } => Transition::SensorProven(*strategy),
                SensorState::Unproven { why, .. } => Transition::SensorUnproven(why.clone()),
            };
            self.journal.record(evidence.taken_at, what);
        }
        if let Err(why) = &evidence.sockets
            && before.is_none_or(|before| before.sockets.is_ok())
        {
            self.journal.record(evidence.taken_at, Transition::SocketsUnreadable(why.clone()));
        }
        if let Err(why) = &evidence.namespace
            && before.is_none_or(|before| before.namespace.is_ok())
        {
            self.journal.record(evidence.taken_at, Transition::CountersUnreadable(why.clone()));
        }
    }
}
