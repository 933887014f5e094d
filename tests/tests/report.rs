//! The report of a real drain: over HTTP, in the log as one line, and as `lastsyn report` shows it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{fs, time::Duration};

use lastsyn_tests::{
    Agent, AgentConfig, Connection, Outcome, Pair, Server, ServerConfig, agent, await_condition, connect_once,
    process::Stream,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
/// What a container runtime does not split, and then some.
const LINE: usize = 12 * 1024;

/// The sum of every lane's bins of a kind.
fn sum(report: &Value, of: &str) -> u64 {
    let lanes = report["attempts"]["lanes"].as_array().unwrap();
    let bins = lanes.iter().filter_map(|lane| lane[of].as_array()).flatten();
    bins.map(|bin| bin.as_u64().unwrap()).sum()
}

#[test]
fn a_drain_s_course_is_over_http_and_in_the_log_and_lastsyn_report_shows_both() {
    let pair = Pair::new().unwrap();
    let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let config = AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "700ms")
        .env("LASTSYN_DRAIN_MIN_WAIT", "1s")
        .env("LASTSYN_AFTER_END_LINGER", "500ms")
        .env("LASTSYN_POD_NAME", "web-1")
        .env("LASTSYN_POD_NAMESPACE", "shop");
    let agent = Agent::start(&pair.pod, config).unwrap();
    // Before the drain: no part of it.
    let connect = |at: usize| Connection::open(&pair.client, pair.targets(80)[at], SOON).unwrap();
    drop((connect(0), connect(1)));
    assert_eq!(agent.get("/v1/report").unwrap().json().unwrap()["reports"], Value::Array(Vec::new()));
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    drop([0, 0, 0, 1, 1].map(connect));
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    server.close().unwrap();
    for at in [0, 1] {
        assert_eq!(connect_once(&pair.client, pair.targets(80)[at], SOON).outcome, Outcome::Refused);
    }

    let answer = agent.get("/v1/report").unwrap().json().unwrap();
    let report = &answer["reports"][0];
    assert_eq!(answer["reports"].as_array().unwrap().len(), 1, "{answer:#}");
    assert_eq!((&report["pod"]["name"], &report["verdict"]["startedAt"]), (&"web-1".into(), &verdict["startedAt"]));
    assert_eq!((sum(report, "counting"), sum(report, "refused")), (7, 2), "five in it, two after it: {report:#}");
    assert_eq!(report["verdict"]["late"]["refused"], 2, "{report:#}");
    let held: Vec<_> = report["conditions"].as_array().unwrap().iter().map(|held| held["condition"].clone()).collect();
    assert!(held.contains(&"floor".into()) && held.contains(&"quiet".into()), "{report:#}");
    for held in report["conditions"].as_array().unwrap() {
        for span in held["spans"].as_array().unwrap() {
            assert!(
                span[0].as_u64() <= span[1].as_u64() && span[1].as_u64() <= verdict["durationMs"].as_u64(),
                "{report:#}"
            );
        }
    }
    let entries: Vec<_> = report["entries"].as_array().unwrap().iter().map(|entry| entry["what"].clone()).collect();
    for what in ["caller 0 called the hook: the drain starts", "the drain ended: quiet"] {
        assert!(entries.contains(&what.into()), "no `{what}` in {entries:#?}");
    }

    agent.terminate().unwrap();
    agent.process().wait_for_success(SOON).unwrap();
    let log = agent.process().text(Stream::Error);
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("\"report\":")).collect();
    assert_eq!(lines.len(), 2, "at the end, and when it is stopped: {log}");
    assert!(lines.iter().all(|line| line.len() <= LINE), "{log}");

    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let shown = |arguments: &[&str]| {
        let shown = agent::subcommand(&pair.pod, "report", arguments).unwrap();
        shown.wait_for_success(SOON).unwrap();
        shown.text(Stream::Output)
    };
    for file in [place("log", &log), place("answer", &answer.to_string())] {
        let text = shown(&[&file]);
        for words in
            ["The drain of shop/web-1", "quiet after", "2 refused", "the drain ended: quiet", "A hook that only sleeps"]
        {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
        let to = directory.path().join("page.html");
        shown(&[&file, "--html", to.to_str().unwrap()]);
        let page = fs::read_to_string(&to).unwrap();
        assert!(page.contains("<td>2, 2 refused</td>") || page.contains("<td>1, 1 refused</td>"), "{page}");
        assert!(page.ends_with("</html>\n") && page.len() < 100 * 1024, "{}", page.len());
    }
    let without = agent::subcommand(&pair.pod, "report", [place("none", "nothing\n")]).unwrap();
    assert_eq!(without.wait(SOON).unwrap().code(), Some(1));
    assert!(without.text(Stream::Error).contains("no drain's report"), "{}", without.report());
}
