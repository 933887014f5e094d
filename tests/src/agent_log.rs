//! What an agent has logged, as a kubelet keeps it: its lines are JSON behind containerd's time and stream.

use serde_json::Value;

/// What of a drain's course stands in the log, in the order in which the agent learnt of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The hook was called.
    Hook,
    /// A slice told that the pod is not to be sent to any more.
    Withdrawn,
    /// The hook was let go.
    Answered,
    /// The server has closed its last listener: its stop signal has come.
    ServerStops,
    /// The agent's own stop signal has come.
    AgentStops,
}

/// The verdict of the last drain, if one has ended.
pub fn verdict(log: &str) -> Option<Value> {
    let verdict = |line: Value| match line.get("verdict")? {
        Value::String(text) => serde_json::from_str(text).ok(),
        verdict => Some(verdict.clone()),
    };
    log.lines().rev().filter_map(json).find_map(verdict)
}

/// The steps of the last drain.
pub fn steps(log: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for message in log.lines().filter_map(json).filter_map(|line| line.get("message")?.as_str().map(str::to_owned)) {
        match step(&message) {
            Some(Step::Hook) => steps = vec![Step::Hook],
            Some(step) if !steps.contains(&step) => steps.push(step),
            _ => {}
        }
    }
    steps
}

fn step(message: &str) -> Option<Step> {
    if message.ends_with("called the hook: the drain starts") {
        Some(Step::Hook)
    } else if message.ends_with("leads to the pod no longer") {
        Some(Step::Withdrawn)
    } else if message.starts_with("the drain ended") {
        Some(Step::Answered)
    } else if message.contains("has no listener any more") {
        Some(Step::ServerStops)
    } else if message.starts_with("asked to stop") {
        Some(Step::AgentStops)
    } else {
        None
    }
}

fn json(line: &str) -> Option<Value> {
    serde_json::from_str(line.get(line.find('{')?..)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"2026-01-01T00:00:00.1Z stderr F {"message":"caller 0 called the hook: the drain starts"}
2026-01-01T00:00:00.2Z stderr F {"message":"Service web over IPv4 leads to the pod no longer"}
2026-01-01T00:00:00.3Z stderr F {"message":"Service web over IPv6 leads to the pod no longer"}
2026-01-01T00:00:00.4Z stderr F {"message":"the drain ended: synced"}
2026-01-01T00:00:00.5Z stderr F {"message":"synced","verdict":"{\"reason\":\"synced\"}"}
2026-01-01T00:00:00.6Z stderr F {"message":"port 8080 has no listener any more; it stays watched"}
2026-01-01T00:00:00.7Z stderr F {"message":"asked to stop (SIGTERM)"}"#;

    #[test]
    fn a_log_tells_the_verdict_and_the_steps_in_their_order() {
        let all = [Step::Hook, Step::Withdrawn, Step::Answered, Step::ServerStops, Step::AgentStops];
        assert_eq!(steps(LOG), all);
        assert_eq!(verdict(LOG).unwrap()["reason"], "synced");
        let turned: Vec<&str> = LOG.lines().rev().collect();
        assert_eq!(steps(&turned.join("\n")), [Step::Hook]);
        assert_eq!(verdict("no JSON {"), None);
        assert_eq!(steps(&format!("{LOG}\n{LOG}")), all);
    }
}
