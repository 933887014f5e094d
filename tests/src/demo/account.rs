//! What came of it, in numbers.

use std::time::Duration;

use anyhow::{Context, Result};
use lastsyn::core::verdict::Verdict;
use serde_json::{Value, json};

use super::{play::Happening, scenario::Plan, text::millis};
use crate::{Attempt, Outcome, Process, Summary, process::Stream};

/// How long a hook that has ended may take to be read.
const SOON: Duration = Duration::from_secs(2);

/// Everything that is known in the end.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) plan: Plan,
    /// When the pod was deleted, on the clock of [`crate::monotonic_now`].
    pub(super) deleted_at: u64,
    /// When new connections went to pod b for sure, on the same clock.
    pub(super) moved_at: Option<u64>,
    /// The hook's, if it was called.
    pub(super) answer: Option<Answer>,
    /// All connections of the client, in the order in which they were tried.
    pub(super) attempts: Vec<Attempt>,
    pub(super) storm: Option<StormAccount>,
    pub(super) happenings: Vec<Happening>,
}

/// The hook's answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// When it was read, on the clock of [`crate::monotonic_now`].
    pub(super) at: u64,
    pub(super) json: Value,
    pub(super) verdict: Verdict,
}

/// What the storm was.
#[derive(Clone, Copy, Debug)]
pub(super) struct StormAccount {
    /// SYNs sent to either pod.
    pub(super) sent: u64,
    /// SYN cookies with which pod a answered.
    pub(super) cookies: u64,
}

// === impl Answer ===

impl Answer {
    /// Reads it from a hook that has ended.
    pub(super) fn of(hook: &Process) -> Result<Self> {
        hook.wait_for_success(SOON)?;
        let line = hook.lines().into_iter().find(|line| line.stream == Stream::Output);
        let line = line.context("the hook has printed no verdict")?;
        let understood = || -> Result<Self> {
            let json: Value = serde_json::from_str(&line.text)?;
            Ok(Self { at: line.at, verdict: serde_json::from_value(json.clone())?, json })
        };
        understood().with_context(|| format!("the hook has printed no verdict of the agent's:\n{}", hook.report()))
    }
}

// === impl Account ===

impl Account {
    /// What came of the connections.
    pub(super) fn summary(&self) -> Summary {
        Summary::of(&self.attempts)
    }

    /// The last connection that went to pod a, by the client's record: pod b serves all that it gets.
    pub(super) fn last_at_pod_a(&self) -> Option<&Attempt> {
        self.attempts.iter().rev().find(|attempt| !matches!(&attempt.outcome, Outcome::Served { by } if by == "b"))
    }

    /// From the client's last connection that went to pod a to the hook's end.
    pub(super) fn last_connection_to_answer(&self) -> Option<Duration> {
        let answer = self.answer.as_ref()?;
        self.last_at_pod_a().map(|last| Duration::from_nanos(answer.at.saturating_sub(last.tried_at)))
    }

    /// From the last SYN, stamped by the kernel as it arrived, to the agent's verdict, in milliseconds.
    pub(super) fn last_syn_to_verdict_ms(&self) -> Option<u64> {
        let listeners = &self.answer.as_ref()?.verdict.listeners;
        listeners.iter().flat_map(|listener| &listener.families).filter_map(|family| family.last_attempt_ago_ms).min()
    }

    /// SYNs that the agent counted in the drain.
    pub(super) fn syns_counted(&self) -> Option<u64> {
        let listeners = &self.answer.as_ref()?.verdict.listeners;
        Some(listeners.iter().flat_map(|listener| &listener.families).map(|family| family.new).sum())
    }

    /// The times between the client's connections from the pod's deletion to the move, longest first.
    pub(super) fn gaps(&self) -> Vec<Duration> {
        let end = self.moved_at.unwrap_or(u64::MAX);
        let in_drain = |attempt: &&Attempt| (self.deleted_at..=end).contains(&attempt.tried_at);
        let tried: Vec<u64> = self.attempts.iter().filter(in_drain).map(|attempt| attempt.tried_at).collect();
        let mut gaps: Vec<Duration> =
            tried.iter().zip(tried.iter().skip(1)).map(|(one, next)| Duration::from_nanos(next - one)).collect();
        gaps.sort_by_key(|gap| std::cmp::Reverse(*gap));
        gaps
    }

    /// One object with the verdict and the numbers.
    pub(super) fn json(&self, expectation: &str, disappointments: &[String]) -> Value {
        let summary = self.summary();
        let mut account = json!({
            "scenario": self.plan.scenario.name(),
            "hook": self.plan.hook,
            "tried": summary.tried,
            "served": {"a": summary.served_by("a"), "b": summary.served_by("b")},
            "refused": summary.refused,
            "reset": summary.reset,
            "closed": summary.closed,
            "timedOut": summary.timed_out,
            "lost": summary.lost(),
            "movedAtMs": self.moved_at.map(|at| millis(Duration::from_nanos(at.saturating_sub(self.deleted_at)))),
            "drainMs": self.answer.as_ref().map(|answer| answer.verdict.duration_ms),
            "lastSynToAnswerMs": self.last_syn_to_verdict_ms(),
            "lastConnectionToAnswerMs": self.last_connection_to_answer().map(millis),
            "synsCounted": self.syns_counted(),
            "verdict": self.answer.as_ref().map(|answer| &answer.json),
            "expectation": expectation,
            "passed": disappointments.is_empty(),
            "why": disappointments,
        });
        if let (Some(storm), Some(account)) = (self.storm, account.as_object_mut()) {
            account.insert("storm".to_owned(), json!({"sent": storm.sent, "synCookies": storm.cookies}));
        }
        account
    }
}
