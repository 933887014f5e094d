//! What the log and the metrics get of a drain.

use super::{Agent, loudness::Loudness};
use crate::{
    cli::words,
    cluster::pod_events::Happening,
    config::format_duration,
    core::{journal::Transition, listener::Port, verdict::Verdict},
    drive::clock,
    report::{self, Report},
    state::State,
};

impl Agent {
    /// S7: says in the log when a client is refused after the hook was let go, and at the end all that came.
    pub(super) fn tell_of_late(&mut self, stop: bool) {
        if self.core.verdict().is_none() || !(stop || self.refused_told < self.core.drains_ended()) {
            return;
        }
        let Some(verdict) = self.core.completed_verdict().map(|verdict| self.with_sources(verdict)) else {
            return;
        };
        let refused = verdict.late.as_ref().is_some_and(|late| late.refused > 0);
        if refused && self.refused_told < self.core.drains_ended() {
            self.refused_told = self.core.drains_ended();
            tracing::warn!("a connection was refused after the drain's end: it was too short for some client");
            self.tell_cluster(Happening::late());
        }
        if stop {
            self.log_report("the drain's course; what came after the drain is in its verdict's `late`");
            self.keep(None);
        }
    }

    /// Puts what has happened into the log and the metrics.
    pub(super) fn tell(&mut self) {
        self.log_journal();
        if self.core.drains_ended() > self.told
            && let Some(verdict) = self.core.verdict().map(|verdict| self.with_sources((**verdict).clone()))
        {
            self.told = self.core.drains_ended();
            self.gate.drain_ended();
            self.metrics.drain_ended(&verdict);
            self.course.recorder.ended(verdict.clone());
            self.log_verdict(&verdict);
            self.tell_cluster(Happening::ended(&verdict, &words::verdict(&verdict)));
            self.log_report("the drain's course; lastsyn report shows it");
            self.keep(None);
        }
    }

    /// Has the courses kept for the agent after this one; `under_way` is when the drain began that is.
    fn keep(&self, under_way: Option<String>) {
        if self.state.is_wanted() {
            self.state.write(State { reports: self.reports(), under_way });
        }
    }

    fn tell_cluster(&mut self, happening: Happening) {
        if let Some(events) = &mut self.events {
            events.tell(happening);
        }
    }

    /// The courses of the last drains, the newest with what came after it.
    pub(super) fn reports(&self) -> Vec<Report> {
        let completed = self.core.completed_verdict().map(|verdict| self.with_sources(verdict));
        self.course.recorder.reports(completed)
    }

    /// One line that holds the last drain's course, short enough that no container runtime splits it.
    fn log_report(&self, what: &str) {
        if let Some(last) = self.reports().last() {
            tracing::info!(report = report::line(last), "{what}");
        }
    }

    /// One line that holds the whole verdict, and one with what it lacks, where it lacks anything.
    fn log_verdict(&mut self, verdict: &Verdict) {
        let reason = verdict.reason.name();
        match serde_json::to_string(verdict) {
            Ok(verdict_json) => tracing::info!(verdict = verdict_json, "the drain ended: {reason}"),
            Err(error) => tracing::warn!(%error, "the drain ended: {reason}; the verdict cannot be written as JSON"),
        }
        if let Some(lacks) = words::lacks(verdict) {
            tracing::warn!("{lacks}");
        }
        self.tell_of_held_back();
    }

    fn tell_of_held_back(&mut self) {
        let held_back = self.said.held_back();
        if held_back > 0 {
            tracing::warn!(
                "{held_back} more lines are not in the log for their number; the report and GET /v1/status have them"
            );
        }
    }

    fn log_journal(&mut self) {
        let journal = self.core.journal();
        let new = usize::try_from(journal.recorded() - self.logged).unwrap_or(usize::MAX);
        let kept = journal.entries().count();
        let mut began = false;
        for entry in journal.entries().skip(kept.saturating_sub(new)) {
            if entry.what == Transition::WatchBehind {
                self.metrics.watch_was_behind();
            }
            self.course.recorder.happened(entry.at, &entry.what);
            if let (Transition::DrainStarted(_), Some(events)) = (&entry.what, &mut self.events) {
                let bound = self.core.drain_span().map(|span| span.bound.since(span.started));
                events.tell(Happening::started(&bound.map_or_else(|| "its bound".to_owned(), format_duration)));
            }
            began |= matches!(entry.what, Transition::DrainStarted(_));
            let routed = self.course.recorder.routed().next().is_some();
            match self.said.loudness(&entry.what, entry.at, routed) {
                Loudness::Warn => tracing::warn!("{}", entry.what),
                Loudness::Info => tracing::info!("{}", entry.what),
                Loudness::Debug => tracing::debug!("{}", entry.what),
            }
        }
        self.logged = journal.recorded();
        if !self.core.is_draining() && self.core.drains_ended() == self.told {
            self.tell_of_held_back();
        }
        if began && let Some(view) = self.core.drain_view(clock::now()) {
            self.keep(Some(view.started_at));
        }
    }
}

/// Ports that the sensor does not take: one line, however many there are.
pub(super) fn of_uncounted(ports: &[(Port, String)]) {
    match ports {
        [] => {}
        [(port, why)] => tracing::warn!(%port, %why, "not counted"),
        [(port, why), more @ ..] => {
            tracing::warn!(%port, %why, more = more.len(), "not counted, and more ports neither");
        }
    }
}
