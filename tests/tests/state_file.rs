//! The state file outlives the agent, and whatever is wrong with it or its file system costs a drain nothing: it is said and counted.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use lastsyn_tests::{
    Agent, AgentConfig, Pair, Server, ServerConfig, agent, await_condition, openmetrics::Metrics, process::Stream,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const NAME: &str = "state.json";

/// A pod with a server.
struct Pod {
    pair: Pair,
    _server: Server,
}

impl Pod {
    fn new() -> Self {
        let pair = Pair::new().unwrap();
        let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
        Self { pair, _server: server }
    }

    fn agent(&self, path: &Path) -> Agent {
        let config = AgentConfig::default()
            .env("LASTSYN_DRAIN_QUIET_PERIOD", "200ms")
            .env("LASTSYN_POD_NAME", "web-1")
            .env("LASTSYN_STATE_PATH", path.to_str().unwrap());
        Agent::start(&self.pair.pod, config).unwrap()
    }
}

/// A drain that ends as it does without a state file.
fn drain(agent: &Agent) -> Value {
    let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    let others = verdict["notObserved"].as_array().unwrap().iter().filter(|what| what["what"] != "api").count();
    assert_eq!(others, 0, "{verdict}");
    verdict
}

fn counted(agent: &Agent, what: &str, result: &str) -> f64 {
    let metrics = Metrics::parse(&agent.metrics().unwrap()).unwrap();
    metrics.value(&format!("lastsyn_state_{what}_total{{result=\"{result}\"}}")).unwrap()
}

fn await_counted(agent: &Agent, what: &str, result: &str, least: f64) {
    await_condition(&format!("{least} {what} {result}"), SOON, || counted(agent, what, result) >= least).unwrap();
}

/// When the drains began that an agent tells of.
fn told(agent: &Agent) -> Vec<Value> {
    let answer = agent.get("/v1/report").unwrap().json().unwrap();
    answer["reports"].as_array().unwrap().iter().map(|report| report["verdict"]["startedAt"].clone()).collect()
}

/// A warning of the agent's, which is one line, and said once.
fn warned(agent: &Agent, words: &str) {
    agent.process().wait_for_line(words, SOON).unwrap();
    let log = agent.process().text(Stream::Error);
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(words)).collect();
    assert!(lines.len() == 1 && lines[0].contains("\"WARN\""), "{words}: {lines:#?}");
}

fn has_not_panicked(agent: &Agent) {
    agent.process().ensure_running().unwrap();
    assert!(!agent.process().text(Stream::Error).contains("panicked"), "{}", agent.process().report());
}

/// The file that an agent leaves after one drain.
fn a_state_file() -> Vec<u8> {
    let (pod, directory) = (Pod::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join(NAME);
    let agent = pod.agent(&path);
    drain(&agent);
    await_condition("the state file", SOON, || {
        fs::read(&path).is_ok_and(|bytes| String::from_utf8(bytes).unwrap().contains("\"verdict\""))
    })
    .unwrap();
    fs::read(&path).unwrap()
}

#[test]
fn an_agent_that_is_killed_leaves_its_drains_to_the_next_one() {
    let (pod, directory) = (Pod::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join(NAME);
    let agent = pod.agent(&path);
    assert!(told(&agent).is_empty());
    let first = drain(&agent);
    // With its beginning, and with its end; where both came at once, with one of them.
    await_condition("the state file", SOON, || {
        fs::read_to_string(&path).is_ok_and(|text| text.contains("\"verdict\""))
    })
    .unwrap();
    assert!((counted(&agent, "reads", "absent") - 1.0).abs() < f64::EPSILON);
    agent.process().kill().unwrap();

    let shown = agent::subcommand(&pod.pair.pod, "report", [&path]).unwrap();
    shown.wait_for_success(SOON).unwrap();
    assert!(shown.text(Stream::Output).contains("The drain of web-1"), "{}", shown.report());

    // What another agent left that was killed while it wrote.
    fs::write(directory.path().join("state.json.new"), "{\"format\":1,\"rep").unwrap();
    let next = pod.agent(&path);
    await_counted(&next, "reads", "read", 1.0);
    await_condition("the drain of before", SOON, || told(&next) == [first["startedAt"].clone()]).unwrap();
    let second = drain(&next);
    let both = [first["startedAt"].clone(), second["startedAt"].clone()];
    assert_eq!(told(&next), both, "oldest first");
    await_condition("both in the file", SOON, || {
        let text = fs::read_to_string(&path).unwrap();
        both.iter().all(|started| text.contains(started.as_str().unwrap()))
    })
    .unwrap();
    await_condition("no file beside it", SOON, || fs::read_dir(directory.path()).unwrap().count() == 1).unwrap();

    // No more than four, and the newest of them.
    for _ in 0..3 {
        drain(&next);
    }
    let four = told(&next);
    assert_eq!((four.len(), &four[0]), (4, &both[1]));
    // An agent that is asked to stop has it written by then.
    next.terminate().unwrap();
    drop(pod);
    next.process().wait_for_success(SOON).unwrap();
    let state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(state["reports"].as_array().unwrap().len(), 4);
    assert!(state["reports"][3]["verdict"]["late"].is_object(), "with what came after the last one: {state:#}");
    assert_eq!(state["underWay"], Value::Null);
}

#[test]
fn an_agent_that_is_killed_in_a_drain_leaves_word_of_it() {
    let (pod, directory) = (Pod::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join(NAME);
    let config = AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "15s")
        .env("LASTSYN_STATE_PATH", path.to_str().unwrap());
    let agent = Agent::start(&pod.pair.pod, config).unwrap();
    let call = agent.drain().unwrap();
    await_condition("the state file", SOON, || fs::read_to_string(&path).is_ok_and(|text| text.contains("underWay")))
        .unwrap();
    agent.process().kill().unwrap();
    drop(call);
    let next = pod.agent(&path);
    warned(&next, "ended while a drain was under way, since 20");
    drain(&next);
    has_not_panicked(&next);
}

#[test]
fn a_file_that_cannot_be_used_is_told_of_and_replaced() {
    let whole = a_state_file();
    let text = String::from_utf8(whole.clone()).unwrap();
    let mut partly: Value = serde_json::from_str(&text).unwrap();
    let report = partly["reports"][0].clone();
    // As an older version may have written it: without what came later, and one with what is no longer known.
    partly["agent"] = "0.0.1".into();
    let kept = partly["reports"][0].as_object_mut().unwrap();
    kept.remove("leftOut").unwrap();
    kept.insert("weather".to_owned(), "fine".into());
    let old = serde_json::json!({"format": 1, "verdict": {"reason": "it seemed so"}});
    partly["reports"].as_array_mut().unwrap().insert(0, old);

    let cases: Vec<(&str, Vec<u8>, &str, &str, usize)> = vec![
        ("torn", whole[..whole.len() / 2].to_vec(), "damaged", "it is no whole state file: EOF", 0),
        ("empty", Vec::new(), "damaged", "it is no whole state file: EOF", 0),
        ("zeroes", vec![0; 8192], "damaged", "it is no whole state file: expected value", 0),
        ("garbage", (0..=255).cycle().take(70_000).collect(), "damaged", "it is no whole state file", 0),
        ("too large", vec![b' '; 3 << 20], "damaged", "it is larger than", 0),
        (
            "newer",
            br#"{"format":2,"agent":"7.0.0","reports":{}}"#.to_vec(),
            "newer",
            "it has format 2, of agent 7.0.0",
            0,
        ),
        ("older", partly.to_string().into_bytes(), "partly", "1 of 2 drains in the state file", 1),
    ];
    for (name, bytes, result, words, readable) in cases {
        let (pod, directory) = (Pod::new(), tempfile::tempdir().unwrap());
        let path = directory.path().join(NAME);
        fs::write(&path, bytes).unwrap();
        let agent = pod.agent(&path);
        warned(&agent, words);
        await_counted(&agent, "reads", result, 1.0);
        await_condition(name, SOON, || told(&agent).len() == readable).unwrap();
        if readable == 1 {
            assert_eq!(told(&agent)[0], report["verdict"]["startedAt"]);
        }
        let verdict = drain(&agent);
        await_counted(&agent, "writes", "written", 1.0);
        await_condition("the new file", SOON, || {
            let state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).ok()?;
            let last = state["reports"].as_array()?.last()?;
            (last["verdict"]["startedAt"] == verdict["startedAt"]).then_some(())
        })
        .unwrap();
        has_not_panicked(&agent);
    }
}

/// A file system in memory, which is gone when dropped.
struct Tmpfs {
    at: tempfile::TempDir,
}

impl Tmpfs {
    fn mount(options: &str) -> Self {
        let at = tempfile::tempdir().unwrap();
        let tmpfs = Self { at };
        tmpfs.run("mount", &["-t", "tmpfs", "-o", options, "tmpfs"]);
        tmpfs
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let done = Command::new(program).args(arguments).arg(self.at.path()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    fn path(&self) -> PathBuf {
        self.at.path().join(NAME)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // An agent that is still there may have a file of it open.
        drop(Command::new("umount").arg("--lazy").arg(self.at.path()).status());
    }
}

#[test]
fn on_a_full_disk_the_drain_goes_on_and_the_file_stays_what_it_was() {
    let disk = Tmpfs::mount("size=64k");
    let before = a_state_file();
    fs::write(disk.path(), &before).unwrap();
    let ballast = disk.at.path().join("ballast");
    // As much as there is room for.
    fs::write(&ballast, vec![1; 1 << 20]).unwrap_err();
    let pod = Pod::new();
    let agent = pod.agent(&disk.path());
    await_condition("the drain of before", SOON, || told(&agent).len() == 1).unwrap();
    drain(&agent);
    warned(&agent, "the courses of drains go with the agent");
    warned(&agent, "No space left on device");
    await_counted(&agent, "writes", "failed", 1.0);
    assert_eq!(fs::read(disk.path()).unwrap(), before);
    assert_eq!(fs::read_dir(disk.at.path()).unwrap().count(), 2, "nothing half written takes room");
    has_not_panicked(&agent);

    fs::remove_file(ballast).unwrap();
    let verdict = drain(&agent);
    agent.process().wait_for_line("the courses of drains are kept again", SOON).unwrap();
    await_condition("the drain in the file", SOON, || {
        fs::read_to_string(disk.path()).unwrap().contains(verdict["startedAt"].as_str().unwrap())
    })
    .unwrap();
}

#[test]
fn on_a_read_only_file_system_the_drain_goes_on_and_what_is_there_is_read() {
    let disk = Tmpfs::mount("size=1m");
    let before = a_state_file();
    fs::write(disk.path(), &before).unwrap();
    disk.run("mount", &["-o", "remount,ro"]);
    let pod = Pod::new();
    let agent = pod.agent(&disk.path());
    await_counted(&agent, "reads", "read", 1.0);
    drain(&agent);
    drain(&agent);
    await_counted(&agent, "writes", "failed", 2.0);
    warned(&agent, "Read-only file system");
    assert_eq!(told(&agent).len(), 3);
    assert_eq!(fs::read(disk.path()).unwrap(), before);
    has_not_panicked(&agent);
}

#[test]
fn where_there_is_no_directory_or_something_else_the_drain_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let in_its_place = directory.path().join("a directory");
    fs::create_dir_all(in_its_place.join("with something in it")).unwrap();
    for (path, result) in [(directory.path().join("none").join(NAME), "absent"), (in_its_place, "failed")] {
        let pod = Pod::new();
        let agent = pod.agent(&path);
        await_counted(&agent, "reads", result, 1.0);
        drain(&agent);
        warned(&agent, "the courses of drains go with the agent");
        await_counted(&agent, "writes", "failed", 1.0);
        has_not_panicked(&agent);
    }
}
