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

/// The verdict of the last drain, if one has ended; with what came after it, if the agent has been stopped since.
pub fn verdict(log: &str) -> Option<Value> {
    let field = |line: &Value, name| match line.get(name)? {
        Value::String(text) => serde_json::from_str::<Value>(text).ok(),
        value => Some(value.clone()),
    };
    let of_report = |line: &Value| field(line, "report")?.get("verdict").cloned();
    let verdict = |line: Value| field(&line, "verdict").or_else(|| of_report(&line));
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

/// What the last drain's lines of level info say, from the hook's call to the end of the log.
pub fn said(log: &str) -> Vec<String> {
    let mut said = Vec::new();
    for line in log.lines().filter_map(json).filter(|line| line.get("level") == Some(&"INFO".into())) {
        let message = line.get("message").and_then(Value::as_str).unwrap_or_default();
        if step(message) == Some(Step::Hook) {
            said.clear();
        }
        said.push(message.to_owned());
    }
    said
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
2026-01-01T00:00:00.4Z stderr F {"message":"the drain ended: synced","verdict":"{\"reason\":\"synced\"}"}
2026-01-01T00:00:00.6Z stderr F {"message":"port 8080 has no listener any more; it stays watched"}
2026-01-01T00:00:00.7Z stderr F {"message":"asked to stop (SIGTERM)"}"#;

    #[test]
    fn what_is_said_is_of_the_last_drain_and_of_level_info() {
        let of = |level: &str, message: &str| format!("x {{\"level\":\"{level}\",\"message\":\"{message}\"}}");
        let hook = "caller 0 called the hook: the drain starts";
        let log = [("INFO", hook), ("INFO", "a"), ("INFO", hook), ("DEBUG", "b"), ("INFO", "c")];
        let log: Vec<_> = log.iter().map(|(level, message)| of(level, message)).collect();
        assert_eq!(said(&log.join("\n")), [hook, "c"]);
    }

    #[test]
    fn a_log_tells_the_verdict_and_the_steps_in_their_order() {
        let all = [Step::Hook, Step::Withdrawn, Step::Answered, Step::ServerStops, Step::AgentStops];
        assert_eq!(steps(LOG), all);
        assert_eq!(verdict(LOG).unwrap()["reason"], "synced");
        let last = r#"{"message":"stopped","report":"{\"verdict\":{\"reason\":\"synced\",\"late\":{}}}"}"#;
        assert!(verdict(&format!("{LOG}\n{last}")).unwrap()["late"].is_object());
        let turned: Vec<&str> = LOG.lines().rev().collect();
        assert_eq!(steps(&turned.join("\n")), [Step::Hook]);
        assert_eq!(verdict("no JSON {"), None);
        assert_eq!(steps(&format!("{LOG}\n{LOG}")), all);
    }
}
