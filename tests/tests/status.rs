//! The status of a real agent: what its schema says, and on a screen that is drawn again.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::time::Duration;

use lastsyn_tests::{
    Agent, AgentConfig, Connection, Pair, Process, Server, ServerConfig, agent, await_condition, helm, process::Stream,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);

fn schema() -> Value {
    serde_json::from_str(include_str!("../../docs/status.schema.json")).unwrap()
}

/// An agent that counts in a pod with a server.
fn scene() -> (Pair, Server, Agent) {
    let pair = Pair::new().unwrap();
    let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let config = AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "3s");
    let agent = Agent::start(&pair.pod, config).unwrap();
    (pair, server, agent)
}

#[test]
fn every_status_is_as_its_schema_says_and_has_what_each_condition_waits_for() {
    let (pair, _server, agent) = scene();
    let serving = agent.status_of_now().unwrap();
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    let kept = Connection::open(&pair.client, pair.targets(80)[0], SOON).unwrap();
    let quiet = |status: &Value| status["drain"]["conditions"][1].clone();
    let draining = await_condition("a drain that waits for quiet", SOON, || {
        agent.status_of_now().ok().filter(|status| {
            quiet(status)["waitsFor"].as_str().is_some_and(|words| words.contains("last: 80 over IPv4"))
                && status["connections"][0]["established"] == 1
        })
    });
    let draining = draining.unwrap();
    let conditions = draining["drain"]["conditions"].as_array().unwrap();
    let rules: Vec<_> = conditions.iter().map(|one| one["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["E1", "E2", "E2a", "E3", "E4", "E5", "E6"]);
    let left = quiet(&draining)["leftMs"].as_u64().unwrap();
    let elapsed = draining["drain"]["elapsedMs"].as_u64().unwrap();
    assert!(quiet(&draining)["holds"] == true && (1..=3000).contains(&left), "{draining:#}");
    assert!(quiet(&draining)["sinceMs"].as_u64().unwrap() <= elapsed, "{draining:#}");
    assert!(conditions.iter().all(|one| one["holds"] == (one["rule"] == "E2") || one["rule"] == "E3"), "{draining:#}");

    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    let ended = agent.status_of_now().unwrap();
    assert_eq!(ended["drain"], Value::Null);
    helm::validate(&schema(), &[serving, draining.clone(), ended]).unwrap().unwrap();

    // What is not documented, and what is not as documented, is refused.
    let mut more = draining.clone();
    more["drain"]["more"] = 1.into();
    let mut less = draining;
    less["listeners"][0]["families"][0]["quiet"] = Value::Null;
    for wrong in [more, less] {
        helm::validate(&schema(), &[wrong]).unwrap().unwrap_err();
    }
    drop(kept);
}

#[test]
fn the_screen_is_drawn_over_itself_on_a_terminal_and_without_a_code_elsewhere() {
    let (pair, _server, agent) = scene();
    let binary = agent::binary().unwrap();
    // A terminal that does not say how large it is.
    let watch = format!("{} status --watch --agent 127.0.0.1:{}", binary.display(), agent::PORT);
    let mut script = pair.pod.command("script").unwrap();
    let terminal = Process::start("a terminal", script.args(["-qfec", &watch, "/dev/null"])).unwrap();
    let arguments = ["--watch".to_owned(), "--agent".to_owned(), format!("127.0.0.1:{}", agent::PORT)];
    let plain = agent::subcommand(&pair.pod, "status", &arguments).unwrap();
    let call = agent.drain().unwrap();
    let kept = Connection::open(&pair.client, pair.targets(80)[1], SOON).unwrap();
    let screens = |process: &Process| -> Vec<String> {
        let text = process.text(Stream::Output);
        text.split("\u{1b}[H").skip(1).map(str::to_owned).collect()
    };
    let shows =
        |screen: &String| screen.contains("draining") && screen.contains("holds") && screen.ends_with("\u{1b}[J");
    await_condition("a screen of the drain", SOON, || screens(&terminal).iter().any(shows)).unwrap();
    let verdict = call.wait(SOON).unwrap().verdict;
    let ended = |text: &str| text.contains("quiet after") && text.contains("drain ended");
    await_condition("a screen of the end", SOON, || screens(&terminal).iter().any(|screen| ended(screen))).unwrap();
    for screen in screens(&terminal) {
        let lines: Vec<_> = screen.lines().collect();
        assert!(lines.len() <= 24, "{screen}");
        let width =
            |line: &&str| {
                let words: String =
                    line.split('\u{1b}')
                        .enumerate()
                        .map(|(at, part)| {
                            if at == 0 { part } else { part.split_once(['m', 'K', 'J']).map_or(part, |(_, rest)| rest) }
                        })
                        .collect();
                words.chars().count()
            };
        assert!(lines.iter().all(|line| width(line) <= 80), "{screen}");
    }
    assert!(screens(&terminal).iter().any(|screen| screen.contains("\u{1b}[33m")), "what holds has a colour");
    await_condition("the end elsewhere", SOON, || ended(&plain.text(Stream::Output))).unwrap();
    let text = plain.text(Stream::Output);
    assert!(text.contains("draining") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    drop(kept);
}
