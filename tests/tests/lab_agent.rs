//! The lab's handling of an agent, with a stand-in that answers in known ways: the lab must be right when the agent is
//! not.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use lastsyn_tests::{
    Agent, AgentConfig, DrainCall, Lab, Pair, Server, ServerConfig, agent, await_condition, monotonic_now,
    sockets::{self, SocketState},
};

const SOON: Duration = Duration::from_secs(5);

#[test]
fn an_agent_is_started_asked_and_ended() {
    let pair = Pair::new().unwrap();
    // What the handle does with any program in the agent's place; the agent's own promises have their own tests.
    let stand_in = executable(
        &pair.lab,
        "stand-in",
        "#!/bin/sh
        env | grep ^LASTSYN_ | sort >&2
        cat > $0.cfg <<'END'
defaults
    mode http
    timeout client 10s
frontend agent
    bind 127.0.0.1:19480
    http-request return status 200 content-type application/json string '{\"state\":\"serving\"}' if { path /v1/status }
    http-request return status 200 content-type application/json string '{\"reason\":\"quiet\"}' if { path /drain } METH_POST
    http-request return status 200 content-type text/plain string 'lastsyn_drains_total 1' if { path /metrics }
    http-request return status 404
END
        exec haproxy -db -f $0.cfg
        ",
    )
    .unwrap();
    let config = AgentConfig { binary: Some(stand_in), ..AgentConfig::default() }.env("LASTSYN_DRAIN_MIN_WAIT", "1s");
    let agent = Agent::start(&pair.pod, config).unwrap();
    agent.process().wait_for_line("LASTSYN_DRAIN_MIN_WAIT=1s", SOON).unwrap();
    let socket = agent.process().wait_for_line("LASTSYN_SERVER_SOCKET=", SOON).unwrap().text;
    assert!(socket.contains(pair.lab.directory().to_str().unwrap()), "{socket}");

    assert_eq!(agent.status().unwrap()["state"], "serving");
    assert_eq!(agent.metrics().unwrap(), "lastsyn_drains_total 1");
    assert!(agent.get("/elsewhere").is_err());
    let before = monotonic_now();
    let call = agent.drain().unwrap();
    let answer = call.wait(SOON).unwrap();
    assert_eq!((answer.status, &answer.verdict["reason"]), (200, &"quiet".into()));
    let order = [before, answer.called_at, answer.answered_at, monotonic_now()];
    assert!(order.is_sorted(), "{order:?}");

    agent.terminate().unwrap();
    agent.wait(SOON).unwrap();
    assert!(agent.drain().unwrap().wait(SOON).is_err());
}

#[test]
fn an_agent_that_ends_says_why() {
    let pair = Pair::new().unwrap();
    let broken = executable(&pair.lab, "broken", "#!/bin/sh\necho the moon is full >&2\nexit 1\n").unwrap();
    let config = AgentConfig { binary: Some(broken), ..AgentConfig::default() };
    let error = Agent::start(&pair.pod, config).unwrap_err();
    assert!(format!("{error:#}").contains("the moon is full"), "{error:#}");
}

#[test]
fn a_caller_of_the_hook_can_hang_up() {
    let pair = Pair::new().unwrap();
    let config = ServerConfig { accept: false, port: agent::PORT, ..ServerConfig::default() };
    let _silent = Server::start(&pair.pod, config).unwrap();
    let call = DrainCall::place(&pair.client, pair.targets(agent::PORT)[0]).unwrap();
    let calls = || {
        let sockets = sockets::tcp_sockets(&pair.pod).unwrap();
        sockets.iter().filter(|socket| socket.state == SocketState::Established).count()
    };
    await_condition("the call", SOON, || calls() == 1).unwrap();
    assert!(call.answered().unwrap().is_none());
    call.hang_up();
    await_condition("its end", SOON, || calls() == 0).unwrap();
}

/// A program in the lab's directory. Another process writes it: a child that another test forks meanwhile would hold
/// this process's file open for writing, and what is open for writing cannot be run.
fn executable(lab: &Lab, name: &str, script: &str) -> anyhow::Result<PathBuf> {
    let path = lab.directory().join(name);
    let source = path.with_extension("sh");
    fs::write(&source, script)?;
    let status = Command::new("install").args(["--mode=755"]).args([&source, &path]).status()?;
    anyhow::ensure!(status.success(), "install ended with {status}");
    Ok(path)
}
