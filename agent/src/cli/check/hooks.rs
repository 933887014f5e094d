//! What kubelet does with each container when the pod ends: who has a hook that waits, and who is stopped at once.

use std::{collections::BTreeSet, time::Duration};

use super::{super::drain::Hook as Arguments, table::Line};
use crate::{
    cluster::{Container, Hook, OwnPod},
    config::{Config, HookFrom, format_duration},
};

const WHAT: &str = "hook";

/// What nobody who could not read the pod can be told more of.
pub(super) fn unknown(from: HookFrom) -> Line {
    Line::note(WHAT, "use the exec hook, `lastsyn drain`", format!("an httpGet hook {}", of_http(from)))
}

/// What becomes of an `httpGet` hook (S6, S10).
fn of_http(from: HookFrom) -> &'static str {
    match from {
        HookFrom::Pod => "comes from the node, is refused, and would break with the agent",
        HookFrom::Node => "breaks with the agent, and kubelet then stops the container at once",
    }
}

/// A line for each container that may listen, where the pod could be read. `open` are the ports that are watched and open.
pub(super) fn lines(own: &OwnPod, open: &BTreeSet<u16>, config: &Config) -> Vec<Line> {
    of_containers(&own.containers, open, config.drain.bound_within(own.grace_period), config.server.hook_from)
}

/// `bound` is how long a drain may last.
fn of_containers(containers: &[Container], open: &BTreeSet<u16>, bound: Duration, from: HookFrom) -> Vec<Line> {
    let declared: BTreeSet<u16> = containers.iter().flat_map(|container| container.ports.iter().copied()).collect();
    let undeclared = list(open.difference(&declared));
    let mut lines = Vec::new();
    for container in containers.iter().filter(|container| !container.is_agent) {
        let Container { name, ports, hook, .. } = container;
        match hook {
            Hook::Absent if !ports.is_empty() => lines.push(Line::warning(
                WHAT,
                format!("container {name} has no preStop hook, and the ports {}", list(ports)),
                "kubelet stops its server at once, whatever still comes; give it the exec hook `lastsyn drain`",
            )),
            Hook::Absent if !undeclared.is_empty() => lines.push(Line::warning(
                WHAT,
                format!("container {name} has no preStop hook; no container says that it listens on {undeclared}"),
                "if it is this one, kubelet stops its server at once; give it the exec hook `lastsyn drain`",
            )),
            Hook::Absent => {}
            Hook::Exec(command) => lines.push(of_command(name, command, bound)),
            Hook::HttpGet => lines.push(Line::warning(
                WHAT,
                format!("container {name} has an httpGet hook"),
                format!("it {}; use the exec hook `lastsyn drain`", of_http(from)),
            )),
            Hook::Sleep(seconds) => lines.push(Line::warning(
                WHAT,
                format!("container {name} waits for {seconds} s, whatever comes"),
                "the exec hook `lastsyn drain` waits for as long as it takes",
            )),
        }
    }
    if lines.is_empty() {
        lines.push(Line::note(
            WHAT,
            "no container says that it listens",
            "who does is to have `lastsyn drain` as its hook",
        ));
    }
    lines
}

fn of_command(name: &str, command: &[String], bound: Duration) -> Line {
    let shown = command.join(" ");
    let found = format!("container {name}: `{shown}`");
    let is_ours = |program: &String| program.rsplit('/').next() == Some("lastsyn");
    let arguments = match command {
        [program, drain, arguments @ ..] if is_ours(program) && drain == "drain" => arguments,
        _ if shown.contains("lastsyn") && shown.contains("drain") => return Line::ok(WHAT, found),
        _ => {
            let advice =
                "it is not known to wait for the drain; call `lastsyn drain` in it, before it closes a listener";
            return Line::warning(WHAT, found, advice);
        }
    };
    let hook = Arguments::read(arguments);
    if let Some(problem) = hook.problems.first() {
        return Line::warning(WHAT, found, problem.clone());
    }
    if hook.mark {
        let advice = "it holds nothing: --mark is for the agent's own container";
        return Line::warning(WHAT, found, advice);
    }
    if hook.bound < bound {
        let advice = format!(
            "it gives up after {}, and a drain may last {}: give it --max-wait {}",
            format_duration(hook.bound),
            format_duration(bound),
            // Longer than the agent's, so that its verdict comes first.
            format_duration(bound + Duration::from_secs(1)),
        );
        return Line::warning(WHAT, found, advice);
    }
    Line::ok(WHAT, found)
}

fn list<'a>(ports: impl IntoIterator<Item = &'a u16>) -> String {
    ports.into_iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{super::table::Table, *};

    fn container(name: &str, ports: &[u16], hook: Hook) -> Container {
        Container { name: name.to_owned(), ports: ports.to_owned(), hook, is_agent: name == "lastsyn" }
    }

    fn exec(command: &str) -> Hook {
        Hook::Exec(command.split(' ').map(str::to_owned).collect())
    }

    fn text(containers: &[Container], open: &[u16]) -> String {
        from(HookFrom::Pod, containers, open)
    }

    fn from(from: HookFrom, containers: &[Container], open: &[u16]) -> String {
        Table(of_containers(containers, &open.iter().copied().collect(), Duration::from_secs(50), from)).to_string()
    }

    #[test]
    fn s6_a_hook_over_http_is_warned_of_whoever_may_call() {
        let hooked = [container("web", &[80], Hook::HttpGet)];
        for (who, part) in [(HookFrom::Pod, "is refused"), (HookFrom::Node, "breaks with the agent")] {
            let found = from(who, &hooked, &[80]);
            assert!(found.starts_with("warn") && found.contains(part), "{found}");
        }
        assert!(!from(HookFrom::Node, &hooked, &[80]).contains("is refused"));
    }

    #[test]
    fn who_has_ports_and_no_hook_is_named() {
        let agent = container("lastsyn", &[19480], Hook::Absent);
        let good = container("web", &[80], exec("/lastsyn/lastsyn drain --max-wait 1m"));
        assert!(text(&[agent.clone(), good.clone()], &[80]).starts_with("ok    hook  container web"));
        let bare = container("api", &[81, 82], Hook::Absent);
        let silent = container("cron", &[], Hook::Absent);
        let found = text(&[agent.clone(), good.clone(), bare, silent.clone()], &[80, 81]);
        assert!(found.contains("warn  hook  container api has no preStop hook, and the ports 81, 82"), "{found}");
        assert!(!found.contains("cron") && !found.contains("container lastsyn"), "{found}");
        let found = text(&[agent.clone(), good, silent.clone()], &[80, 8443]);
        assert!(
            found.contains("container cron has no preStop hook; no container says that it listens on 8443"),
            "{found}"
        );
        assert!(text(&[agent, silent], &[]).contains("no container says that it listens"));
    }

    #[test]
    fn a_hook_that_does_not_wait_long_enough_is_named() {
        for (hook, mark, part) in [
            (exec("lastsyn drain"), "warn", "gives up after 25s, and a drain may last 50s: give it --max-wait 51s"),
            (exec("lastsyn drain --max-wait 50s"), "ok  ", ""),
            (exec("lastsyn drain --max-wait 50"), "warn", "--max-wait"),
            (exec("lastsyn drain --mark"), "warn", "holds nothing"),
            (exec("/bin/sh -c /lastsyn/lastsyn drain; nginx -s quit"), "ok  ", ""),
            (exec("nginx -s quit"), "warn", "not known to wait"),
            (Hook::HttpGet, "warn", "httpGet"),
            (Hook::Sleep(30), "warn", "30 s, whatever comes"),
        ] {
            let found = text(&[container("web", &[80], hook)], &[80]);
            assert!(found.starts_with(mark) && found.contains(part), "{found}");
        }
    }
}
