//! `HAProxy`, by its runtime socket or its master's (`management.txt`, "Unix Socket commands", "Master CLI").
//!
//! Its soft stop is kubelet's stop signal, `SIGUSR1`. `disable frontend` is never sent: it closes the listener, so that
//! new connections are refused. What clients and probes are shown is up to its configuration, which looks at two servers
//! that the agent disables (`nbsrv`): `docs/servers.md` has it.

use std::{io, slice};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};

use super::{Listener, ProxyError, View, beginning, within};
use crate::{
    client::{Candidate, LONGEST_ANSWER},
    config::HaProxy,
    core::phase::Phase,
};

/// What a phase is in commands; empty where there is nothing to be said.
pub(super) fn commands(config: &HaProxy, phase: Phase) -> Vec<String> {
    let (announce, readiness) = (&config.announce_server, &config.readiness_server);
    let (verb, servers) = match phase {
        Phase::Announce => ("disable", vec![announce]),
        Phase::FailReadiness => ("disable", vec![readiness]),
        Phase::TakeBack => ("enable", vec![readiness, announce]),
    };
    servers.into_iter().flatten().map(|server| format!("{verb} server {server}")).collect()
}

pub(super) async fn tell(config: &HaProxy, phase: Phase) -> Result<(), ProxyError> {
    for command in commands(config, phase) {
        let answer = ask(config, &command).await?;
        // It says nothing where it has done what it was told.
        let said = beginning(&answer);
        if !said.is_empty() {
            return Err(ProxyError::Refused { place: place(config), command, answer: said });
        }
    }
    Ok(())
}

pub(super) async fn view(config: &HaProxy) -> Result<View, ProxyError> {
    const SHOW: &str = "show stat -1 1 -1"; // all proxies, their frontends alone
    let answer = ask(config, SHOW).await?;
    let text = String::from_utf8_lossy(&answer);
    let view = frontends(&text).ok_or_else(|| ProxyError::Foreign {
        place: place(config),
        request: format!("`{SHOW}`"),
        expected: "HAProxy's runtime socket",
        body: beginning(&answer),
    })?;
    for server in config.announce_server.iter().chain(&config.readiness_server) {
        // Harmless, and answered with a number where the server exists.
        let command = format!("get weight {server}");
        let said = beginning(&ask(config, &command).await?);
        if !said.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(ProxyError::Refused { place: place(config), command, answer: said });
        }
    }
    Ok(view)
}

/// The frontends of a table of `show stat`, by the names of its columns. `None` if it is none.
fn frontends(text: &str) -> Option<View> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let columns: Vec<&str> = lines.next()?.strip_prefix("# ")?.split(',').collect();
    let column = |wanted: &str| columns.iter().position(|name| *name == wanted);
    let (name, current) = (column("pxname")?, column("scur")?);
    let listeners = lines
        .filter_map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let name = (*cells.get(name)?).to_owned();
            Some(Listener { name, ports: Vec::new(), connections: cells.get(current)?.parse().ok() })
        })
        .collect();
    Some(View { listeners })
}

fn place(config: &HaProxy) -> String {
    config.socket.to_string()
}

/// Sends one command. `HAProxy` answers it and closes.
async fn ask(config: &HaProxy, command: &str) -> Result<Bytes, ProxyError> {
    let line = if config.master { format!("@1 {command}\n") } else { format!("{command}\n") };
    let exchange = async {
        match &config.socket {
            Candidate::Unix(path) => exchange(UnixStream::connect(path).await?, &line).await,
            Candidate::Tcp(address) => exchange(TcpStream::connect(address).await?, &line).await,
        }
    };
    within(slice::from_ref(&config.socket), async {
        exchange.await.map_err(|source| ProxyError::Socket { place: place(config), source })
    })
    .await
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, line: &str) -> io::Result<Bytes> {
    stream.write_all(line.as_bytes()).await?;
    let mut answer = Vec::new();
    let limit = u64::try_from(LONGEST_ANSWER).unwrap_or(u64::MAX);
    // A server that is reset while it still has something to say has said what counts.
    (&mut stream).take(limit).read_to_end(&mut answer).await?;
    if answer.len() == LONGEST_ANSWER {
        return Err(io::Error::other(format!("the answer is longer than {LONGEST_ANSWER} bytes")));
    }
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed without an answer"));
    }
    Ok(answer.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> HaProxy {
        serde_json::from_str(text).expect("a configuration")
    }

    #[test]
    fn no_command_ever_closes_a_listener() {
        let all = config(
            r#"{"socket": "unix:/s", "master": false, "announceServer": "lastsyn/keep", "readinessServer": "lastsyn/ready"}"#,
        );
        assert_eq!(commands(&all, Phase::Announce), ["disable server lastsyn/keep"]);
        assert_eq!(commands(&all, Phase::FailReadiness), ["disable server lastsyn/ready"]);
        assert_eq!(
            commands(&all, Phase::TakeBack),
            ["enable server lastsyn/ready", "enable server lastsyn/keep"],
            "what was disabled is enabled again"
        );
        for phase in [Phase::Announce, Phase::FailReadiness, Phase::TakeBack] {
            assert!(commands(&HaProxy::default(), phase).is_empty());
        }
    }

    #[test]
    fn a_server_name_is_no_second_command() {
        for name in ["a/b; disable frontend web", "a/b\ndisable frontend web", "ready", "/", "a/", "a/b/c", "a b/c"] {
            let text = serde_json::json!({"socket": "unix:/s", "master": false, "announceServer": name}).to_string();
            assert!(serde_json::from_str::<HaProxy>(&text).is_err(), "{name}");
        }
    }

    #[test]
    fn frontends_are_read_by_the_names_of_columns() {
        let text = "# pxname,svname,qcur,qmax,scur,smax,\nweb,FRONTEND,,,7,9,\n";
        let view = frontends(text).expect("a table");
        assert_eq!((view.listeners[0].name.as_str(), view.connections()), ("web", 7));
        for other in ["", "Unknown command", "<html>", "# a,b\nweb,1\n"] {
            assert_eq!(frontends(other), None, "{other}");
        }
    }
}
