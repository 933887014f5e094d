//! The demonstration as people run it: its own program, its numbers, its exit code.

use std::{fmt, process::Command, time::Duration};

use anyhow::{Context as _, Result};
use lastsyn_tests::{Process, process::Stream};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn a_steady_client_loses_nothing() {
    let played = play(&["--scenario", "steady", "--move-after", "1s"]).unwrap();
    assert!(played.success, "{played}");
    assert_eq!(played.account["passed"], true, "{played}");
    assert_eq!(played.number("/lost").unwrap(), 0);
    let served = ["/served/a", "/served/b"].map(|pod| played.number(pod).unwrap());
    assert_eq!(served.iter().sum::<u64>(), played.number("/tried").unwrap(), "{played}");
    assert!(served.iter().all(|count| *count > 0), "{played}");

    // Never earlier than the rules allow.
    assert_eq!(played.account["verdict"]["reason"], "quiet", "{played}");
    assert!(played.number("/movedAtMs").unwrap() >= 1000, "{played}");
    assert!(played.number("/drainMs").unwrap() >= 2000, "{played}");
    assert!(played.number("/lastSynToAnswerMs").unwrap() >= 2000, "{played}");
    assert!(played.number("/lastConnectionToAnswerMs").unwrap() >= 2000, "{played}");

    // Two ports, two families, and all that the agent counted in the drain was served by pod a.
    let counts: Vec<u64> = ["80", "8080"]
        .iter()
        .zip(played.account["verdict"]["listeners"].as_array().unwrap())
        .flat_map(|(port, listener)| {
            assert_eq!(listener["port"].to_string(), *port);
            listener["families"].as_array().unwrap().iter().map(|family| family["new"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(counts.len(), 4, "{played}");
    assert!(counts.iter().all(|count| *count > 0), "{played}");
    assert!(counts.iter().sum::<u64>() <= served[0], "{played}");
}

#[test]
fn without_the_hook_connections_are_lost() {
    let played = play(&["--without-hook", "--move-after", "1s"]).unwrap();
    assert!(played.success, "{played}");
    assert!(played.number("/refused").unwrap() > 0, "{played}");
    assert!(played.number("/lost").unwrap() >= played.number("/refused").unwrap(), "{played}");
    assert!(played.account["verdict"].is_null() && played.account["drainMs"].is_null(), "{played}");
}

/// The object that a demonstration prints, and how it ended.
struct Played {
    account: Value,
    success: bool,
}

fn play(arguments: &[&str]) -> Result<Played> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    let demo = Process::start("the demonstration", command.arg("--json").args(arguments))?;
    let success = demo.wait(PATIENCE)?.success();
    // One object, and nothing else.
    let account = serde_json::from_str(&demo.text(Stream::Output))
        .with_context(|| format!("the demonstration wrote:\n{}", demo.report()))?;
    Ok(Played { account, success })
}

impl Played {
    fn number(&self, pointer: &str) -> Result<u64> {
        let number = self.account.pointer(pointer).and_then(Value::as_u64);
        number.with_context(|| format!("there is no number {pointer} in {self}"))
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.account)
    }
}
