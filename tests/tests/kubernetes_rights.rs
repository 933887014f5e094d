//! Every right that the agent has is optional: without one it drains, names what it lost, and `check` says how to give it back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig,
    kubernetes::{Access, Cluster, Mode, PORT, PodSpec, Right, ServiceSpec, Workload},
};
use serde_json::Value;

/// No drain lasts longer: its bound is 20 s.
const BOUND: Duration = Duration::from_secs(30);
/// What the bound is.
const MAX_WAIT: u64 = 20_000;

/// What a drain's verdict has to name.
struct Case {
    name: &'static str,
    access: Access,
    names: &'static [&'static str],
}

fn named(verdict: &Value) -> Vec<&str> {
    let entries = verdict["notObserved"].as_array().into_iter().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry["what"].as_str()).collect();
    names.dedup();
    names
}

fn without(cluster: &Cluster, name: &str, right: Right) -> Result<Access> {
    let rights: Vec<Right> = Right::ALL.into_iter().filter(|other| *other != right).collect();
    cluster.access(name, &rights)
}

#[test]
fn without_a_right_a_drain_ends_unverified_and_names_what_is_missing() -> Result<()> {
    let cluster = Cluster::up(Mode::Nftables)?;
    cluster.service(&ServiceSpec::new("web", "web", PORT))?;
    let unreachable = cluster.access("unreachable", &Right::ALL)?.unreachable();
    let cases = [
        Case { name: "slices", access: without(&cluster, "slices", Right::Slices)?, names: &["api"] },
        Case { name: "services", access: without(&cluster, "services", Right::Services)?, names: &["policy"] },
        Case { name: "nodes", access: without(&cluster, "nodes", Right::Nodes)?, names: &["nodes"] },
        Case { name: "pod", access: without(&cluster, "pod", Right::Pod)?, names: &["pod"] },
        Case { name: "unreachable", access: unreachable, names: &["api", "nodes", "pod", "termination"] },
    ];
    let stays = Workload::start(&cluster, 1, &PodSpec::new("stays", "web", PORT), None, AgentConfig::default())?;
    let mut workloads = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let spec = PodSpec::new(case.name, "web", PORT);
        workloads.push(Workload::start(&cluster, number % 3, &spec, Some(&case.access), AgentConfig::default())?);
    }
    for workload in workloads.iter().chain([&stays]) {
        cluster.await_routes(&workload.pod, PORT, true)?;
    }
    let drains = workloads.iter().map(Workload::delete).collect::<Result<Vec<_>>>()?;
    for (case, drain) in cases.iter().zip(drains) {
        let verdict = drain.finish(BOUND)?.verdict;
        let what = format!("without {}: {verdict:#}", case.name);
        ensure!(verdict["reason"] == "unverified", "{what}");
        let names = named(&verdict);
        // Nodes may have been only waited for, beside what is missing.
        let names: Vec<_> = names.into_iter().filter(|name| *name != "sync").collect();
        ensure!(names == case.names, "{names:?}, {what}");
        let lasted = verdict["durationMs"].as_u64().context("a duration")?;
        ensure!(lasted < MAX_WAIT, "{what}");
    }
    Ok(())
}
