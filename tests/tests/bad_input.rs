//! What keeps an agent from starting: an error that says what is wrong and what to do, and the exit code that the help
//! documents. Mistakes that need no pod to be made are in the agent's own tests.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{fs, time::Duration};

use lastsyn_tests::{Agent, AgentConfig, Bind, Pair, Server, ServerConfig, agent, process::Stream};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn an_address_in_use_ends_with_1_and_advice() {
    let pair = Pair::new().unwrap();
    let squatter = Server::start(&pair.pod, ServerConfig { port: agent::PORT, ..ServerConfig::default() }).unwrap();
    let said = fails(&pair, AgentConfig::default(), 1);
    for part in ["[::]:19480 is in use", "another process", "server.address", "LASTSYN_SERVER_ADDRESS"] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
    // As advised.
    let elsewhere =
        AgentConfig { port: Some(19_490), ..AgentConfig::default() }.env("LASTSYN_SERVER_ADDRESS", "[::]:19490");
    Agent::start(&pair.pod, elsewhere).unwrap();

    // On one family only it is in use as well: the agent would not be found there.
    drop(squatter);
    for bind in [Bind::V4, Bind::V6] {
        let config = ServerConfig { port: agent::PORT, bind, ..ServerConfig::default() };
        let _squatter = Server::start(&pair.pod, config).unwrap();
        let said = fails(&pair, AgentConfig::default(), 1);
        assert!(said.contains("is in use"), "{said}");
    }
    let first = Agent::start(&pair.pod, AgentConfig::default()).unwrap();
    let said = fails(&pair, AgentConfig::default(), 1);
    assert!(said.contains("is in use"), "{said}");
    // The second one has not pushed its programs in front of the first one's.
    let status = first.status_of_now().unwrap();
    let proven = status["journal"].to_string().matches("is known to see every SYN").count();
    assert_eq!(proven, 1, "{status}");
}

#[test]
fn an_address_of_somebody_else_ends_with_1() {
    let pair = Pair::new().unwrap();
    let said = fails(&pair, AgentConfig::default().env("LASTSYN_SERVER_ADDRESS", "192.0.2.1:19480"), 1);
    for part in ["192.0.2.1:19480", "server.address"] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

#[test]
fn a_file_that_must_not_be_read_ends_with_2_and_its_name() {
    let pair = Pair::new().unwrap();
    let path = pair.pod.directory().join("secret.yaml");
    fs::write(&path, "drain: { quietPeriod: 1s }\n").unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let name = path.to_str().unwrap();
    // Root without its right to read everything.
    let config = AgentConfig::default().arg("--config").arg(name).through(["setpriv", "--bounding-set=-all"]);
    let said = fails(&pair, config, 2);
    for part in [name, "--config", "Permission denied"] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
    let directory = pair.pod.directory().to_str().unwrap().to_owned();
    let said = fails(&pair, AgentConfig::default().arg("--config").arg(&directory), 2);
    assert!(said.contains(&directory) && said.contains("directory"), "{said}");
}

#[test]
fn a_quiet_period_above_the_bound_ends_with_2_and_both_values() {
    let pair = Pair::new().unwrap();
    let config = AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "6s").arg("--drain.max-wait").arg("5s");
    let said = fails(&pair, config, 2);
    let parts = [
        "drain.quietPeriod = 6s",
        "LASTSYN_DRAIN_QUIET_PERIOD",
        "drain.maxWait = 5s",
        "--drain.max-wait",
        "lower the one",
    ];
    for part in parts {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

#[test]
fn a_socket_that_cannot_be_had_is_no_reason_to_stop() {
    let pair = Pair::new().unwrap();
    // Its directory is a file.
    let file = pair.pod.directory().join("file");
    fs::write(&file, "").unwrap();
    let path = file.join("hook.sock");
    let config = AgentConfig::default().env("LASTSYN_SERVER_SOCKET", path.to_str().unwrap());
    let agent = Agent::start(&pair.pod, config).unwrap();
    let warning = agent.process().wait_for_line("no unix socket", SOON).unwrap().text;
    assert!(warning.contains("WARN") && warning.contains(path.to_str().unwrap()), "{warning}");
}

/// Waits for the agent's end with this code; what it said.
fn fails(pair: &Pair, config: AgentConfig, code: i32) -> String {
    let agent = Agent::spawn(&pair.pod, config).unwrap();
    let status = agent.wait(SOON).unwrap();
    let said = agent.process().text(Stream::Error);
    assert_eq!(status.code(), Some(code), "{said}");
    assert_eq!(agent.process().text(Stream::Output), "");
    said
}
