//! What has to come of a scenario. Each check can fail, and says why.

use std::time::Duration;

use lastsyn::{cli::words, config::Drain, core::verdict::Reason};

use super::{
    account::{Account, Answer},
    scenario::{PAUSE, Plan, Scenario},
    text::{millis, seconds},
};

/// By how much a drain without any connection may last longer than the quiet period, on a busy machine.
const LENIENCE: Duration = Duration::from_secs(1);
/// A gap between connections that is longer than this is a pause of the client.
const SEEN_AS_PAUSE: Duration = Duration::from_secs(1);

/// What is expected, in words.
pub(super) fn of(plan: &Plan) -> &'static str {
    match (plan.scenario, plan.hook) {
        (_, false) => "connections are refused: this is what the hook prevents",
        (Scenario::Steady, _) => {
            "no connection is lost; the hook answers once the quiet period has passed since the last one that reached pod a"
        }
        (Scenario::Pause, _) => {
            "no connection is lost: pauses that are shorter than the quiet period do not end the drain"
        }
        (Scenario::Stops, _) => "no connection is lost; the drain lasts for the quiet period and hardly longer",
        (Scenario::Storm, _) => {
            "no connection of the client is lost; the drain is not over before the storm has gone to pod b"
        }
        (Scenario::ClosedPort, _) => {
            "connections are refused; the agent counts them on the closed ports and says when those were closed"
        }
    }
}

/// What was expected and did not come about, a sentence each.
pub(super) fn check(account: &Account) -> Vec<String> {
    let mut disappointments = Vec::new();
    let mut expect = |held: bool, otherwise: String| {
        if !held {
            disappointments.push(otherwise);
        }
    };
    let summary = account.summary();
    let Plan { scenario, hook, .. } = account.plan;
    let loses = !hook || scenario == Scenario::ClosedPort;
    if loses {
        expect(summary.refused > 0, "no connection was refused, so nothing was shown".to_owned());
    } else {
        expect(summary.lost() == 0, format!("connections were lost: {summary}"));
    }
    expect(summary.served_by("a") > 0, "pod a has served nobody".to_owned());
    expect(summary.served_by("b") > 0, "pod b has served nobody".to_owned());
    if let Some(answer) = &account.answer {
        check_answer(account, answer, &mut expect);
    }
    if let Some(storm) = account.storm {
        expect(storm.cookies > 0, "pod a has sent no SYN cookies: the storm was too weak".to_owned());
    }
    disappointments
}

fn check_answer(account: &Account, answer: &Answer, expect: &mut impl FnMut(bool, String)) {
    let verdict = &answer.verdict;
    let quiet_period = Drain::default().quiet_period;
    let drain = Duration::from_millis(verdict.duration_ms);
    let counted = account.syns_counted().unwrap_or(0);
    expect(
        verdict.reason != Reason::Bound,
        format!("the drain lasted to its bound, held by {}", words::holding(&verdict.holding)),
    );
    if let Some(time) = account.last_connection_to_answer() {
        expect(time >= quiet_period, format!("the hook answered {} after a connection to pod a", seconds(time)));
    }
    if let Some(time) = account.last_syn_to_verdict_ms() {
        expect(time >= millis(quiet_period), format!("the drain ended {time} ms after a SYN"));
    }
    if account.plan.scenario != Scenario::Stops {
        let moved_first = account.moved_at.is_some_and(|moved| moved < answer.at);
        expect(moved_first, "the hook answered while the node still sent connections to pod a".to_owned());
        expect(counted > 0, "the agent has counted no SYN in the drain".to_owned());
    }
    match account.plan.scenario {
        Scenario::Steady => {}
        Scenario::Pause => {
            let gaps = account.gaps();
            let pauses = gaps.iter().filter(|gap| **gap >= SEEN_AS_PAUSE).count();
            expect(pauses >= 2, format!("the client paused {pauses} times in the drain, not twice"));
            if let Some(longest) = gaps.first().filter(|longest| **longest >= quiet_period) {
                let (pause, longest) = (seconds(PAUSE), seconds(*longest));
                expect(false, format!("this machine made {longest} of a pause of {pause}: nothing was shown"));
            }
        }
        Scenario::Stops => {
            expect(counted == 0, format!("{counted} SYNs came after the client had stopped"));
            expect(drain >= quiet_period, format!("the drain was over after {}", seconds(drain)));
            expect(drain < quiet_period + LENIENCE, format!("the drain lasted for {}", seconds(drain)));
        }
        Scenario::Storm => {
            let own = u64::try_from(account.attempts.len()).unwrap_or(u64::MAX);
            expect(counted > own, format!("the agent has counted {counted} SYNs in the drain: there was no storm"));
        }
        Scenario::ClosedPort => {
            let refused = account.summary().refused;
            expect(counted >= refused, format!("{refused} connections were refused and only {counted} SYNs counted"));
            for listener in verdict.listeners.iter().filter(|listener| listener.closed_at_ms.is_none()) {
                expect(false, format!("the verdict does not say that port {} was closed", listener.port));
            }
            expect(!verdict.listeners.is_empty(), "the verdict has no listener".to_owned());
        }
    }
}
