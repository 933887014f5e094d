//! What whoever looks at the agent is shown.

use crate::{
    core::{
        clock::{Monotonic, millis},
        confirm::Tally,
        drain::Core,
        event::{Evidence, SensorState},
        settings::Settings,
        verdict::{Condition, Listener, Nodes, Strategy},
    },
    drive::{conditions::Conditions, evidence::Reader},
    report::Recorder,
    sensor::ProgramRuns,
    server::status::{DrainStatus, JournalLine, PassedOver, SensorStatus, State, Status},
};

/// The status, and what the metrics need beyond it.
#[derive(Clone, Debug)]
pub struct Look {
    /// The status.
    pub status: Status,
    /// Every watched listener, counted since it is watched.
    pub totals: Vec<Listener>,
    /// The newest evidence.
    pub evidence: Option<Evidence>,
    /// How many nodes are in which state, in the drain under way.
    pub nodes: Tally,
    /// What the kernel's account says of the runs of our programs, where it keeps one.
    pub runs: Vec<ProgramRuns>,
    /// How many parts of the API server's objects could not be read, since the agent started.
    pub left_out: u64,
}

/// Looks.
pub(super) fn look(agent: Seen<'_>, left_out: u64, started: Monotonic, now: Monotonic) -> Look {
    let Seen { core, reader, .. } = agent;
    let evidence = core.evidence().cloned();
    Look {
        status: status(agent, started, now),
        totals: core.totals(),
        evidence,
        nodes: core.node_tally(),
        runs: reader.sensor().runs(),
        left_out,
    }
}

/// What is looked at.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) core: &'a Core,
    pub(super) reader: &'a Reader,
    pub(super) settings: &'a Settings,
    pub(super) recorder: &'a Recorder,
}

fn status(agent: Seen<'_>, started: Monotonic, now: Monotonic) -> Status {
    let Seen { core, reader, settings, recorder } = agent;
    let drain = core.drain_view(now);
    let conditions = |holding: &[Condition]| {
        let span = core.drain_span();
        span.map(|span| Conditions { core, settings, recorder, span, now }.told(holding)).unwrap_or_default()
    };
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_ms: millis(now.since(started)),
        state: match (&drain, core.verdict()) {
            (Some(_), _) => State::Draining,
            (None, Some(_)) => State::Ended,
            (None, None) => State::Serving,
        },
        sensor: sensor(core, reader),
        listeners: core.listeners(),
        drain: drain.map(|drain| DrainStatus {
            started_at: drain.started_at,
            elapsed_ms: drain.elapsed_ms,
            max_wait_ms: drain.max_wait_ms,
            callers: u32::try_from(drain.callers).unwrap_or(u32::MAX),
            conditions: conditions(&drain.holding),
            nodes: nodes(core.node_tally()),
            holding: drain.holding,
        }),
        connections: None,
        sources: None,
        drains_ended: core.drains_ended(),
        verdict: core.completed_verdict(),
        journal: core
            .journal()
            .entries()
            .map(|entry| JournalLine { at_ms: millis(entry.at.since(started)), what: entry.what.to_string() })
            .collect(),
    }
}

/// As verdicts tell them.
pub(super) fn nodes(tally: Tally) -> Nodes {
    Nodes {
        total: tally.total(),
        confirmed: tally.confirmed,
        assumed: tally.assumed,
        waited: tally.waited,
        pending: tally.pending,
        unobservable: tally.unobservable,
    }
}

fn sensor(core: &Core, reader: &Reader) -> SensorStatus {
    let (strategy, why): (Strategy, _) = match core.evidence().map(|evidence| &evidence.sensor) {
        Some(SensorState::Proven { strategy, .. }) => (*strategy, core.blind()),
        Some(SensorState::Unproven { strategy, why }) => (*strategy, Some(why.clone())),
        None => (reader.sensor().strategy(), Some("nothing has been read yet".to_owned())),
    };
    SensorStatus {
        strategy,
        healthy: why.is_none(),
        scoped: reader.sensor().is_scoped(),
        why,
        blind_ms: reader.sensor().blind().map(millis),
        interfaces: reader.sensor().interfaces(),
        probes: reader.probes(),
        passed_over: reader
            .passed_over()
            .iter()
            .map(|(strategy, why)| PassedOver { strategy: *strategy, why: why.clone() })
            .collect(),
    }
}
