//! `lastsyn drain`: the exec hook. It holds its own bound from its own start, and only a verdict ends it earlier (S2):
//! kubelet stops the server as soon as the hook ends, however it ends.

mod arguments;
mod hold;
mod mark;

use serde::Serialize;
use tokio::time::Instant;

pub(super) use self::arguments::{DEFAULT_BOUND_TEXT, Hook};
use self::hold::{Outcome, Unanswered};
use super::{
    command,
    exit::Exit,
    output::{remark, result},
    words,
};
use crate::{
    client,
    config::{format_duration, variables},
    core::verdict::{NotObserved, Reason},
};

/// Holds. `start` is when the process began, which is when the bound begins.
pub(super) fn main(arguments: &[String], start: Instant) -> Exit {
    let mut hook = Hook::read(arguments);
    if hook.help {
        let mut command = command();
        if let Some(drain) = command.find_subcommand_mut("drain") {
            result(drain.render_long_help());
        }
        return Exit::Done;
    }
    let bound = format_duration(hook.bound);
    for problem in &hook.problems {
        remark(format_args!("drain: {problem}"));
    }
    if !hook.problems.is_empty() {
        remark(format_args!("drain: holding all the same, for {bound} or until the agent's verdict; see --help"));
    }
    for complaint in locate(&mut hook, variables()) {
        remark(format_args!("drain: {complaint}"));
    }
    if hook.mark {
        return mark::main(&hook);
    }

    hold_through_a_panic(hook.clone(), start);
    let outcome = run(&hook, start);
    report(&hook, start, &outcome);
    exit(&hook, &outcome)
}

/// From here on a panic holds to the bound before it ends the process. Libraries panic where a system without file
/// descriptors or memory refuses what they cannot do without (tokio's signal pipe does), and a fault never lets go.
fn hold_through_a_panic(hook: Hook, start: Instant) {
    std::panic::set_hook(Box::new(move |panic| {
        let failure = format!("the hook itself failed: {panic}").replace('\n', " ");
        remark(format_args!("drain: {failure}; holding until {} have passed", format_duration(hook.bound)));
        hold::sleep_until(start + hook.bound);
        let outcome = Outcome::Bound(Unanswered { reached: false, failures: vec![failure] });
        report(&hook, start, &outcome);
        std::process::exit(exit(&hook, &outcome).code().into());
    }));
}

/// Fills in where to ask, where no argument says so. Complains about variables, and goes on without them: the defaults
/// may well do.
fn locate(hook: &mut Hook, environment: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    if !hook.agents.is_empty() {
        return Vec::new();
    }
    let (candidates, complaints) = client::usual(environment);
    hook.agents = candidates;
    complaints
}

fn run(hook: &Hook, start: Instant) -> Outcome {
    let bound = format_duration(hook.bound);
    let say = |failures: &str| {
        remark(format_args!(
            "drain: no verdict to be had ({failures}); holding the hook until {bound} have passed, as if connections \
             still came, and asking again meanwhile"
        ));
    };
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(hold::hold(start, hook.bound, &hook.agents, say)),
        Err(error) => {
            let failure = format!("the hook cannot ask: {error}");
            remark(format_args!(
                "drain: {failure}; holding the hook until {bound} have passed, as if connections still came"
            ));
            hold::sleep_until(start + hook.bound);
            Outcome::Bound(Unanswered { reached: false, failures: vec![failure] })
        }
    }
}

/// The verdict that the hook gives itself where the agent gave none.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnVerdict {
    reason: Reason,
    /// Always `hook`: a verdict of the agent's has no such field.
    by: &'static str,
    duration_ms: u64,
    agent: Agent,
    not_observed: Vec<NotObserved>,
}

/// What the hook saw of the agent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Agent {
    /// Whether anybody took a connection.
    reached: bool,
    /// What became of the last attempts, one for each place.
    last_seen: Vec<String>,
}

fn report(hook: &Hook, start: Instant, outcome: &Outcome) {
    match outcome {
        Outcome::Verdict(verdict) if hook.json => result(&verdict.line),
        Outcome::Verdict(verdict) => result(match &verdict.known {
            Some(verdict) => words::verdict(verdict),
            None => words::foreign_verdict(&verdict.reason, verdict.duration_ms),
        }),
        Outcome::Bound(unanswered) => {
            let duration_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            if !hook.json {
                result(format_args!(
                    "bound of the hook reached after {}, without a verdict ({}): nothing is known about new connections",
                    words::seconds(duration_ms),
                    unanswered.failures.join("; "),
                ));
                return;
            }
            let why = if unanswered.reached { "the agent gave no verdict" } else { "no agent was reached" };
            let not_observed = NotObserved { what: "agent".to_owned(), name: None, family: None, why: why.to_owned() };
            let verdict = OwnVerdict {
                reason: Reason::Bound,
                by: "hook",
                duration_ms,
                agent: Agent { reached: unanswered.reached, last_seen: unanswered.failures.clone() },
                not_observed: vec![not_observed],
            };
            match serde_json::to_string(&verdict) {
                Ok(line) => result(line),
                Err(error) => remark(format_args!("drain: cannot write the verdict: {error}")),
            }
        }
    }
}

fn exit(hook: &Hook, outcome: &Outcome) -> Exit {
    match outcome {
        _ if !hook.problems.is_empty() => Exit::Usage,
        _ if !hook.strict => Exit::Done,
        Outcome::Verdict(verdict) if verdict.reason != Reason::Bound.name() => Exit::Done,
        Outcome::Bound(unanswered) if !unanswered.reached => Exit::Unreached,
        _ => Exit::Bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_variable_is_said_and_ignored() {
        let mut hook = Hook::read(&[]);
        let variables = [("LASTSYN_SERVER_ADDRESS", "here"), ("LASTSYN_SERVER_SOCKET", ""), ("LASTSYN_NONE", "1")];
        let complaints = locate(&mut hook, variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(complaints.iter().all(|complaint| complaint.contains("LASTSYN_SERVER_ADDRESS is ignored")));
        assert_eq!((complaints.len(), hook.agents.len()), (1, 2));
        assert_eq!(exit(&hook, &Outcome::Bound(Unanswered { reached: false, failures: Vec::new() })), Exit::Done);
    }
}
