//! `lastsyn fence status`: which node's kube-proxy is late?

use clap::ArgMatches;

use super::super::{
    exit::Exit,
    output::{remark, result},
    words,
};
use crate::{
    config::FencePlace,
    fence::look::{FenceStatus, NodeLook, NodeStands},
};

/// Where a fence is asked that nobody names: beside it, in its own pod.
const HERE: &str = "http://localhost:19481";

pub(in super::super) fn main(matches: &ArgMatches) -> Exit {
    let text = matches.get_one::<String>("fence").map_or(HERE, String::as_str);
    let place: FencePlace = match text.parse() {
        Ok(place) => place,
        Err(error) => {
            remark(format_args!("fence status: --fence: {error}"));
            return Exit::Usage;
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            remark(format_args!("fence status: no event loop: {error}"));
            return Exit::Failed;
        }
    };
    match runtime.block_on(crate::fence::client::status(&place)) {
        Ok(body) if matches.get_flag("json") => {
            result(body.trim_end());
            Exit::Done
        }
        Ok(body) => match serde_json::from_str::<FenceStatus>(&body) {
            Ok(status) => {
                result(render(&status).trim_end());
                Exit::Done
            }
            Err(error) => {
                remark(format_args!(
                    "fence status: the answer is not one that this version knows ({error}); --json shows it"
                ));
                Exit::Failed
            }
        },
        Err(why) => {
            remark(format_args!("fence status: no fence answers at {place} ({why}); --fence says where it is"));
            Exit::Failed
        }
    }
}

fn render(status: &FenceStatus) -> String {
    let does = if status.writes { "serves" } else { "rests: nobody asks, or another replica serves" };
    let mut lines =
        vec![format!("fence    {} {}, {does}, {} answers under way", status.version, status.identity, status.answers)];
    lines.extend(status.trouble.iter().map(|trouble| format!("trouble  {}: {}", trouble.family, trouble.why)));
    if status.nodes.is_empty() {
        lines.push("nodes    none has been asked yet".to_owned());
        return lines.join("\n");
    }
    let width = status.nodes.iter().map(|node| node.node.len()).max().unwrap_or(0).max(4);
    lines.push(format!(
        "{:width$}  {:6}  {:8}  {:>3}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}",
        "node", "family", "state", "gen", "shown", "last", "p50", "p90", "max"
    ));
    lines.extend(status.nodes.iter().map(|node| line(node, width)));
    lines.join("\n")
}

fn line(node: &NodeLook, width: usize) -> String {
    let state = match node.state {
        NodeStands::Shows => "shows",
        NodeStands::Late => "late",
        NodeStands::Silent => "silent",
        NodeStands::Stranger => "stranger",
        NodeStands::Resting => "resting",
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let lag =
        |pick: fn(&crate::fence::look::Lag) -> u64| or_none(node.lag.as_ref().map(|lag| format!("{} ms", pick(lag))));
    let why = node.why.as_ref().map_or_else(String::new, |why| format!("  {why}"));
    format!(
        "{:width$}  {:6}  {state:8}  {:>3}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}{why}",
        node.node,
        node.family.name(),
        or_none(node.generation.map(|generation| generation.to_string())),
        or_none(node.shown_ago_ms.map(|ago| format!("{} ago", words::seconds(ago)))),
        lag(|lag| lag.last_ms),
        lag(|lag| lag.p50_ms),
        lag(|lag| lag.p90_ms),
        lag(|lag| lag.max_ms),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::listener::Family, fence::look::Lag};

    #[test]
    fn the_late_node_is_seen_at_once() {
        let node = |name: &str, state, why: Option<&str>, lag| NodeLook {
            node: name.to_owned(),
            family: Family::V6,
            state,
            why: why.map(str::to_owned),
            generation: Some(3),
            shown_ago_ms: Some(1500),
            way: String::new(),
            lag,
        };
        let lag = Lag { last_ms: 1060, p50_ms: 1050, p90_ms: 1100, max_ms: 1200, count: 9 };
        let status = FenceStatus {
            version: "1".to_owned(),
            identity: "fence-a".to_owned(),
            writes: true,
            answers: 2,
            nodes: vec![
                node("node-a", NodeStands::Shows, None, Some(lag)),
                node("node-b", NodeStands::Silent, Some("it does not answer"), None),
            ],
            ..FenceStatus::default()
        };
        let text = render(&status);
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).expect(name);
        assert!(line("node-a").contains("1060 ms") && line("node-a").contains("1200 ms"), "{text}");
        assert!(line("node-b").ends_with("it does not answer") && line("node-b").contains("silent"), "{text}");
    }
}
