//! What the agent can do with fewer rights or an older kernel: it runs, says what is missing and what to do about it, and
//! claims no more than it sees.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::time::Duration;

use anyhow::Result;
use lastsyn_tests::{
    Agent, AgentConfig, Connection, Pair, Server, ServerConfig, agent, await_condition, pair::INTERFACE,
    process::Stream, tcx::verified_instructions,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
/// Long enough for a slow machine to set a scene while a drain lasts.
const QUIET: Duration = Duration::from_secs(2);
/// Makes the agent's program run in a kernel without TCX.
const WITHOUT_TCX: &str = env!("CARGO_BIN_EXE_without_tcx");
/// Makes a program run under a seccomp profile.
const UNDER_PROFILE: &str = env!("CARGO_BIN_EXE_under_profile");
/// The one that the chart has.
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/lastsyn/seccomp/lastsyn.json");

#[test]
fn two_capabilities_are_enough() {
    let pair = Pair::new().unwrap();
    let agent = Agent::start(&pair.pod, config().through(only("+bpf,+net_admin"))).unwrap();
    sees_everything(&pair, &agent, "tcx");
    // With these two the verifier takes fewer states for alike than with more; and older kernels do so in any case.
    let followed = verified_instructions(&pair.pod, INTERFACE).unwrap();
    println!("the verifier followed {followed} instructions");
    assert!(followed < 200_000, "the verifier had to follow {followed} instructions: its limit is a million");
}

#[test]
fn the_charts_seccomp_profile_is_enough_and_no_more_than_that() {
    let pair = Pair::new().unwrap();
    let through = [only("+bpf,+net_admin"), vec![UNDER_PROFILE.to_owned(), PROFILE.to_owned()]].concat();
    let agent = Agent::start(&pair.pod, config().through(through)).unwrap();
    sees_everything(&pair, &agent, "tcx");
    let hook = agent.hook(["--json"]).unwrap();
    hook.wait_for_success(SOON).unwrap();
    agent.terminate().unwrap();
    agent.process().wait_for_success(SOON).unwrap();

    let under = |program: &[&str]| {
        let command = &mut pair.pod.command(UNDER_PROFILE).unwrap();
        command.arg(PROFILE).args(program).status().unwrap().success()
    };
    assert!(under(&["true"]), "nothing runs under it");
    for refused in
        [&["unshare", "--mount", "true"][..], &["mount", "-t", "tmpfs", "none", "/mnt"], &["chroot", "/", "true"]]
    {
        assert!(!under(refused), "{refused:?} is let through");
    }
}

#[test]
fn type_information_of_the_kernel_is_not_needed() {
    let pair = Pair::new().unwrap();
    // In a mount namespace of its own: nobody else loses the directory.
    let hide = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let agent = Agent::start(&pair.pod, config().through(["unshare", "-m", "sh", "-c", hide, "sh"])).unwrap();
    let its_view = format!("/proc/{}/root/sys/kernel/btf/vmlinux", agent.process().pid());
    assert!(!std::path::Path::new(&its_view).exists(), "{its_view} is not hidden");
    sees_everything(&pair, &agent, "tcx");
}

#[test]
fn the_same_two_are_enough_without_tcx() {
    let pair = Pair::new().unwrap();
    let through = [vec![WITHOUT_TCX.to_owned()], only("+bpf,+net_admin")].concat();
    let agent = Agent::start(&pair.pod, config().through(through)).unwrap();
    sees_everything(&pair, &agent, "clsact");
    passed_over(&agent, "tcx", &["the kernel has no TCX", "Linux 6.6"]);
}

#[test]
fn one_that_needs_no_ebpf_is_enough_for_a_packet_socket() {
    let pair = Pair::new().unwrap();
    let agent = Agent::start(&pair.pod, config().through(only("+net_raw"))).unwrap();
    sees_everything(&pair, &agent, "packet");
    for better in ["tcx", "clsact"] {
        passed_over(&agent, better, &["BPF (", "NET_ADMIN (", "securityContext.capabilities.add"]);
    }
}

#[test]
fn in_a_user_namespace_of_its_own_the_agent_would_take_a_packet_socket() {
    let pair = Pair::new().unwrap();
    // A namespace of the network comes with it: the node's rights do not reach the pod's.
    let up = "ip link set lo up && exec \"$@\"";
    let unshare = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", up, "sh"];
    let agent = Agent::start(&pair.pod, config().through(unshare));
    // It answers in its own namespace, where nobody asks: its log tells.
    let said = match agent {
        Ok(_) => panic!("the agent is in the pod's namespace"),
        Err(error) => format!("{error:#}"),
    };
    assert!(said.contains(r#""strategy":"packet""#), "{said}");
    assert!(said.contains("a user namespace of its own (hostUsers: false)"), "{said}");
}

#[test]
fn without_capabilities_the_agent_runs_on_the_counters_and_is_never_sure() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = Agent::start(&pair.pod, config().through(only(""))).unwrap();
    let why = runs_on_counters(&agent, &["BPF (", "NET_ADMIN (", "securityContext.capabilities.add"]).unwrap();

    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || state(&agent) == "draining").unwrap();
    // Its coarse view holds the drain all the same.
    assert_eq!(Connection::open(&pair.client, pair.targets(80)[0], SOON).unwrap().request().unwrap(), "server");
    let connected_at = lastsyn_tests::monotonic_now();
    let answer = call.wait(SOON).unwrap();
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(connected_at));
    assert!(held >= QUIET, "the drain ended {held:?} after a connection: {}", answer.verdict);
    is_unverified(&answer.verdict, &why);
}

#[test]
fn each_missing_capability_is_named() {
    let pair = Pair::new().unwrap();
    for (has, missing) in [("+net_admin", "BPF"), ("+bpf", "NET_ADMIN")] {
        let agent = Agent::start(&pair.pod, config().through(only(has))).unwrap();
        let raw = "packet: the container lacks NET_RAW (to ";
        let why =
            runs_on_counters(&agent, &[&format!("tcx, clsact: the container lacks {missing} (to "), raw]).unwrap();
        assert!(!why.contains(" and "), "{why}");
    }
}

#[test]
fn an_operator_who_insists_gets_it_or_an_error() {
    let pair = Pair::new().unwrap();
    let insisting = |on| config().env("LASTSYN_SENSOR_STRATEGY", on);
    for (on, through, why) in [
        ("tcx", only(""), "BPF (to load"),
        ("tcx", only("+bpf,+net_raw"), "NET_ADMIN (to attach"),
        ("tcx", vec![WITHOUT_TCX.to_owned()], "the kernel has no TCX"),
        ("clsact", only("+net_admin"), "BPF (to load"),
        ("packet", only("+bpf,+net_admin"), "NET_RAW (to see"),
        ("cgroup", Vec::new(), "is in none of a pod"),
    ] {
        let agent = Agent::spawn(&pair.pod, insisting(on).through(through)).unwrap();
        let status = agent.wait(SOON).unwrap();
        let said = agent.process().text(Stream::Error);
        assert_eq!(status.code(), Some(1), "{said}");
        let insists = format!("sensor.strategy is {on}, but");
        for part in [insists.as_str(), why, "with sensor.strategy: auto the agent would run"] {
            assert!(said.contains(part), "no `{part}` in {said}");
        }
    }
    for on in ["tcx", "clsact", "packet", "counters"] {
        let agent = Agent::start(&pair.pod, insisting(on)).unwrap();
        let status = agent.status().unwrap();
        assert_eq!(
            (&status["sensor"]["strategy"], &status["sensor"]["passedOver"]),
            (&on.into(), &Value::Array(vec![]))
        );
    }
}

#[test]
fn check_tells_what_each_sensor_lacks_and_which_would_run() {
    let pair = Pair::new().unwrap();
    let table = |capabilities: &str| {
        let mut command = pair.pod.command("setpriv").unwrap();
        command.args(only(capabilities).into_iter().skip(1)).arg(agent::binary().unwrap()).arg("check");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let marks = |table: &str, what: &str| {
        let line = table.lines().find(|line| line.split_whitespace().nth(1) == Some(what));
        line.map_or_else(|| format!("nothing of {what} in {table}"), |line| line[..4].trim().to_owned())
    };
    let with_all = table("+bpf,+net_admin,+net_raw");
    assert_eq!(marks(&with_all, "tcx"), "ok", "{with_all}");
    assert!(!with_all.contains("packet"), "{with_all}");
    let raw = table("+net_raw");
    assert_eq!(["tcx", "clsact", "packet"].map(|what| marks(&raw, what)), ["note", "note", "ok"], "{raw}");
    let none = table("");
    assert_eq!(["packet", "sensor"].map(|what| marks(&none, what)), ["note", "warn"], "{none}");
    assert!(none.contains("NET_RAW (to see"), "{none}");
}

fn config() -> AgentConfig {
    AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
}

/// Root with no capabilities but these.
fn only(capabilities: &str) -> Vec<String> {
    let bounding = ["-all", capabilities].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    vec!["setpriv".to_owned(), format!("--bounding-set={bounding}"), "--inh-caps=-all".to_owned()]
}

/// The sensor is whole, counts, and a drain ends `quiet`.
fn sees_everything(pair: &Pair, agent: &Agent, strategy: &str) {
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let status = agent.status_of_now().unwrap();
    assert_eq!(
        (&status["sensor"]["strategy"], &status["sensor"]["healthy"]),
        (&strategy.into(), &true.into()),
        "{status}"
    );
    for target in pair.targets(80) {
        assert_eq!(Connection::open(&pair.client, target, SOON).unwrap().request().unwrap(), "server");
    }
    let status = agent.status_of_now().unwrap();
    for family in ["IPv4", "IPv6"] {
        assert_eq!(agent::counts(&status, 80, family).map(|counts| counts.new), Some(1), "{status}");
    }
    let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
    let sensor = &verdict["sensor"];
    assert_eq!((&verdict["reason"], &sensor["healthy"]), (&"quiet".into(), &true.into()), "{verdict}");
    assert_eq!((&sensor["strategy"], &sensor["witness"]), (&strategy.into(), &true.into()), "{verdict}");
}

/// The status tells in these words why a better sensor was passed over, and so does the log.
fn passed_over(agent: &Agent, strategy: &str, words: &[&str]) {
    let status = agent.status().unwrap();
    let mut passed_over = status["sensor"]["passedOver"].as_array().into_iter().flatten();
    let entry = passed_over.find(|entry| entry["strategy"] == strategy);
    let why = entry.map(|entry| entry["why"].to_string()).unwrap_or_default();
    let warning = agent.process().wait_for_line("the best sensor cannot be had", SOON).unwrap().text;
    for word in words {
        assert!(why.contains(word), "the status does not say `{word}` of {strategy}: {status}");
        assert!(warning.contains(word), "the log does not say `{word}`: {warning}");
    }
}

/// The status says `counters`, the log warns, and both say why in these words. Returns why.
fn runs_on_counters(agent: &Agent, words: &[&str]) -> Result<String> {
    let status = agent.status()?;
    let sensor = &status["sensor"];
    assert_eq!((&sensor["strategy"], &sensor["healthy"]), (&"counters".into(), &false.into()), "{status}");
    let why = sensor["why"].as_str().unwrap_or_default().to_owned();
    let warning = agent.process().wait_for_line("the best sensor cannot be had", SOON)?.text;
    for word in words {
        assert!(why.contains(word), "the status does not say `{word}`: {why}");
        assert!(warning.contains(word), "the log does not say `{word}`: {warning}");
    }
    assert!(warning.contains("WARN") && warning.contains(r#""taken":"counters""#), "{warning}");
    agent.process().wait_for_line("drains can end `unverified` at best", SOON)?;
    Ok(why)
}

fn is_unverified(verdict: &Value, why: &str) {
    assert_eq!(verdict["reason"], "unverified", "{verdict}");
    let sensor = &verdict["sensor"];
    assert_eq!((&sensor["strategy"], &sensor["healthy"]), (&"counters".into(), &false.into()), "{verdict}");
    let mut entries = verdict["notObserved"].as_array().into_iter().flatten();
    assert!(entries.any(|entry| entry["what"] == "sensor" && entry["why"] == why), "{verdict}");
}

fn state(agent: &Agent) -> Value {
    agent.status().map_or(Value::Null, |status| status["state"].clone())
}
