//! `mode: observe`, between the loop and [`crate::observe`]: from the beginning of the pod's termination until the agent leaves.

use std::time::Duration;

use super::Agent;
use crate::{
    config::{Config, Mode},
    core::{clock::Monotonic, event::Depth},
    drive::clock,
    observe::{Before, Begun, Known, Observation, text},
    report::course::Pod,
};

/// What is observed of the pod's termination.
pub(super) struct Observing {
    wanted: bool,
    quiet_period: Duration,
    linger: Duration,
    /// How long after SIGTERM the agent is gone.
    longest: Duration,
    pod: Pod,
    before: Option<Before>,
    asked_to_stop: Option<Monotonic>,
    /// Until when it stays though nothing else keeps it.
    until: Option<Monotonic>,
}

impl Observing {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            wanted: config.mode == Mode::Observe,
            quiet_period: config.drain.quiet_period,
            linger: config.after_end.linger,
            longest: config.drain.bound() + config.drain.stop_reserve,
            pod: Pod::of(config),
            before: None,
            asked_to_stop: None,
            until: None,
        }
    }

    /// When it has stayed for long enough.
    pub(super) fn until(&self) -> Option<Monotonic> {
        self.until
    }
}

impl Agent {
    /// The pod's termination has begun: what comes from now on is observed.
    pub(super) async fn termination_began(&mut self, by: Begun) {
        if !self.observing.wanted {
            return;
        }
        if by == Begun::Signal {
            self.observing.asked_to_stop.get_or_insert_with(clock::now);
        }
        if self.observing.before.is_some() {
            return;
        }
        self.knockers.observe(&mut self.reader);
        self.read(Depth::Handshakes).await;
        let Some(evidence) = self.core.evidence() else { return };
        self.observing.before = Some(Before::new(evidence, clock::wall_time(), by));
        tracing::info!("the pod is terminating: for how long new connections keep coming is observed");
    }

    /// What has been observed so far, by a reading of now; `None` where nothing is.
    pub(super) async fn observation(&mut self) -> Option<Observation> {
        self.observing.before.as_ref()?;
        self.read(Depth::Listeners).await;
        let evidence = self.core.evidence()?;
        let Observing { pod, quiet_period, .. } = &self.observing;
        let sources = self.knockers.observed(&self.reader, evidence.taken_at);
        let known = Known { pod: pod.clone(), quiet_period: *quiet_period, sources };
        Some(self.observing.before.as_ref()?.since(evidence, known))
    }

    /// Whether the agent is to leave: nothing keeps it (`free`), and `afterEnd.linger` has passed since then, where it observes.
    pub(super) fn leaves(&mut self, free: bool) -> bool {
        let now = clock::now();
        if free && let (true, Some(asked)) = (self.observing.before.is_some(), self.observing.asked_to_stop) {
            self.observing.until = Some((now + self.observing.linger).min(asked + self.observing.longest));
        }
        self.observing.until.map_or(free, |until| now >= until)
    }

    /// The one line that it is all for.
    pub(super) async fn tell_observation(&mut self) {
        let Some(observation) = self.observation().await else { return };
        match serde_json::to_string(&observation) {
            Ok(json) => tracing::info!(observation = json, "{}", text::sentence(&observation)),
            Err(error) => tracing::warn!(%error, "the observation cannot be written as JSON"),
        }
    }
}
