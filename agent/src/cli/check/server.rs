//! Whether the server in the pod can be told, and what it says of its connections beside the kernel. Nothing is told.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::timeout;

use super::table::Line;
use crate::{
    config::{Config, FailAfter, ProxyKind, format_duration},
    core::{event::Depth, listener::Port},
    proxy::{Listener, Server, View},
    server::readiness,
    sockets,
};

/// kubelet's probes wait for 1 s where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn lines(config: &Config) -> Vec<Line> {
    let mut lines = vec![server(config).await];
    for (name, url) in &config.readiness.upstream {
        let silent = |_elapsed| Err(format!("no answer within {PATIENCE:?}"));
        lines.push(match timeout(PATIENCE, readiness::ask(url)).await.unwrap_or_else(silent) {
            Ok(answer) if answer.status.is_success() || answer.status.is_redirection() => {
                Line::ok("readiness", format!("/ready/{name}: {url} answers {}", answer.status))
            }
            Ok(answer) => Line::warning(
                "readiness",
                format!("/ready/{name}: {url} answers {}", answer.status),
                "kubelet is given the same answer: the pod is not ready",
            ),
            Err(error) => Line::warning(
                "readiness",
                format!("/ready/{name}: {url}: {error}"),
                "the server opens its port later, or readiness.upstream names another one",
            ),
        });
    }
    if config.tells_the_server() {
        lines.extend(when(config));
    }
    lines
}

async fn server(config: &Config) -> Line {
    let kind = config.proxy.kind.name();
    match Server::new(&config.proxy).view().await {
        Ok(Some(view)) => Line::ok("server", format!("{kind} answers; {}", compare(&view, established(&view)))),
        Ok(None) if config.proxy.kind == ProxyKind::None => {
            Line::ok("server", "proxy.kind is none: it is told nothing")
        }
        Ok(None) => Line::note(
            "server",
            "proxy.http's requests are not tried: each would have its effect",
            "see in the agent's log what came of them in a drain",
        ),
        Err(error) => Line::warning(
            "server",
            format!("{kind} cannot be told: {error}"),
            format!("drains go on without it, and nobody is asked to leave; see proxy.{kind} in `lastsyn run --help`"),
        ),
    }
}

/// What the kernel shows at the ports that the server names.
fn established(view: &View) -> impl Fn(&Listener) -> Option<u64> {
    let ports: BTreeSet<Port> = view.listeners.iter().flat_map(|listener| listener.ports.iter().copied()).collect();
    let table = sockets::read(Depth::Connections, &ports).ok();
    let table = table.and_then(|sockets| sockets.connections?.established);
    move |listener| {
        let table = table.as_ref().filter(|_| !listener.ports.is_empty())?;
        Some(listener.ports.iter().filter_map(|port| table.get(port)).sum())
    }
}

/// Each listener with both counts. They differ while a connection waits to be accepted (the kernel has it, the server does
/// not), and while one that the client has closed waits for the server to notice (the other way round).
fn compare(view: &View, established: impl Fn(&Listener) -> Option<u64>) -> String {
    let shown: Vec<_> = view
        .listeners
        .iter()
        .map(|listener| {
            let ports: Vec<_> = listener.ports.iter().map(ToString::to_string).collect();
            let ports = if ports.is_empty() { String::new() } else { format!(" (port {})", ports.join(", ")) };
            let own = listener.connections.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
            let kernel = established(listener).map_or_else(String::new, |count| format!(", {count} by the kernel's"));
            format!("{}{ports}: {own} connections by its own count{kernel}", listener.name)
        })
        .collect();
    if shown.is_empty() { "it has no listener".to_owned() } else { shown.join("; ") }
}

/// When it is told.
fn when(config: &Config) -> Vec<Line> {
    let mut lines = Vec::new();
    let guard = config.drain.restart_guard;
    if !guard.is_zero() {
        lines.push(Line::note(
            "phases",
            format!("the server is told nothing within {} of the hook's call", format_duration(guard)),
            "unless SIGTERM or the agent's own hook comes: give the agent's container the preStop hook `lastsyn drain --mark`",
        ));
    }
    if config.readiness.fail_after == FailAfter::Auto && !config.routing.enabled {
        lines.push(Line::note(
            "phases",
            "readiness.failAfter is auto, and routing is not watched: readiness holds to the end",
            "give a duration where a load balancer is to find the pod not ready before that",
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_counts_stand_side_by_side() {
        let listener = |name: &str, ports: &[u16], connections| Listener {
            name: name.to_owned(),
            ports: ports.iter().map(|port| Port::try_from(*port).expect("a port")).collect(),
            connections,
        };
        let view = View { listeners: vec![listener("web", &[80, 443], Some(3)), listener("pipe", &[], None)] };
        let text = compare(&view, |listener| (!listener.ports.is_empty()).then_some(4));
        assert_eq!(
            text,
            "web (port 80, 443): 3 connections by its own count, 4 by the kernel's; pipe: unknown connections by its own \
             count"
        );
        assert_eq!(compare(&View::default(), |_| None), "it has no listener");
    }
}
