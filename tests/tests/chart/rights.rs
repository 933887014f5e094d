//! The `Role` and `ClusterRole` as the chart renders them, given to agents: with all rules everything works, and each rule that is
//! taken away costs something that is named.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use lastsyn_tests::{
    AgentConfig,
    kubernetes::{Access, Cluster, Ended, Mode, PORT, PodSpec, ServiceSpec, Workload},
    manifests::kind,
    process::Stream,
};
use serde_json::{Value, json};

use crate::variants::release_in_the_lab;

/// No drain lasts longer: its bound is 20 s.
const BOUND: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(10);

/// What the lack of a rule costs, by the resource that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    /// The verdict names it in `notObserved`.
    NotObserved(&'static str),
    /// The agent's log says that there are no Events.
    NoEvents,
}

/// A rule of the rendered roles.
#[derive(Clone, Debug)]
struct Rule {
    /// Where it is: the number of its manifest, and of the rule in it.
    place: (usize, usize),
    resource: String,
}

/// A server and an agent, with the rights of a release of the chart.
struct Agent {
    /// The resource of the rule that is missing.
    without: Option<String>,
    workload: Workload,
}

// === impl Cost ===

impl Cost {
    /// A rule of which nothing is known here would be one that nothing shows to be needed.
    fn of(resource: &str) -> Result<Self> {
        match resource {
            "endpointslices" => Ok(Self::NotObserved("api")),
            "services" => Ok(Self::NotObserved("policy")),
            "pods" => Ok(Self::NotObserved("pod")),
            "nodes" => Ok(Self::NotObserved("nodes")),
            "events" => Ok(Self::NoEvents),
            other => Err(anyhow!("the chart grants {other}, and what the lack of it costs is not known")),
        }
    }
}

/// A release of a name, with every right that there is.
fn rendered(name: &str) -> Result<Vec<Value>> {
    release_in_the_lab(name, json!({"rbac": {"events": true}, "check": {"create": false}}))
}

/// Every rule of every role.
fn rules(manifests: &[Value]) -> Result<Vec<Rule>> {
    let mut found = Vec::new();
    for (number, manifest) in manifests.iter().enumerate() {
        for (index, rule) in manifest["rules"].as_array().into_iter().flatten().enumerate() {
            let resources = rule["resources"].as_array().context("a rule without resources")?;
            ensure!(resources.len() == 1, "a rule for several resources cannot be taken away for one: {rule}");
            let resource = resources[0].as_str().context("a resource")?.to_owned();
            found.push(Rule { place: (number, index), resource });
        }
    }
    Ok(found)
}

/// Installs a release without a rule, and asks for the token of the account that it makes.
fn install(cluster: &Cluster, name: &str, without: Option<&Rule>) -> Result<Access> {
    let mut manifests = rendered(name)?;
    if let Some(Rule { place: (manifest, rule), .. }) = without {
        manifests[*manifest]["rules"].as_array_mut().context("no rules")?.remove(*rule);
    }
    for manifest in &manifests {
        cluster.api().create(manifest).with_context(|| format!("{manifest:#}"))?;
    }
    let account = manifests.iter().find(|manifest| kind(manifest) == "ServiceAccount").context("no ServiceAccount")?;
    cluster.access_of_account(account["metadata"]["name"].as_str().context("a name")?)
}

fn start(cluster: &Cluster, node: usize, without: Option<&Rule>) -> Result<Agent> {
    let missing = without.map(|rule| rule.resource.clone());
    let name = missing.as_ref().map_or_else(|| "whole".to_owned(), |resource| format!("no-{resource}"));
    let access = install(cluster, &name, without)?;
    let config = AgentConfig::default().env("LASTSYN_REPORT_EVENTS", "true");
    let workload = Workload::start(cluster, node, &PodSpec::new(&name, "web", PORT), Some(&access), config)?;
    Ok(Agent { without: missing, workload })
}

/// What a verdict names, aside from nodes that were only waited for.
fn named(ended: &Ended) -> Vec<&str> {
    let entries = ended.verdict["notObserved"].as_array().into_iter().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry["what"].as_str()).filter(|name| *name != "sync").collect();
    names.dedup();
    names
}

#[test]
fn each_rule_of_the_rendered_roles_taken_away_costs_what_is_named() -> Result<()> {
    let rules = rules(&rendered("web")?)?;
    // The four that a drain makes use of, and that of Events.
    ensure!(rules.len() == 5, "{rules:#?}");
    let cluster = Cluster::up(Mode::Nftables)?;
    cluster.service(&ServiceSpec::new("web", "web", PORT))?;
    let stays = Workload::start(&cluster, 1, &PodSpec::new("stays", "web", PORT), None, AgentConfig::default())?;
    let mut agents = vec![start(&cluster, 0, None)?];
    for (number, rule) in rules.iter().enumerate() {
        agents.push(start(&cluster, number % 3, Some(rule))?);
    }
    for pod in agents.iter().map(|agent| &agent.workload.pod).chain([&stays.pod]) {
        cluster.await_routes(pod, PORT, true)?;
    }

    let drains = agents.iter().map(|agent| agent.workload.delete()).collect::<Result<Vec<_>>>()?;
    for (agent, drain) in agents.iter().zip(drains) {
        let ended = drain.finish(BOUND)?;
        let what = format!("without {:?}: {:#}", agent.without, ended.verdict);
        let process = agent.workload.agent.process();
        match agent.without.as_deref().map(Cost::of).transpose()? {
            Some(Cost::NotObserved(name)) => {
                ensure!(ended.reason() == "unverified" && named(&ended) == [name], "{what}");
            }
            Some(Cost::NoEvents) => {
                process.wait_for_line("the Event could not be written", SOON)?;
                ensure!(ended.by_evidence_or_wait() && named(&ended).is_empty(), "{what}");
            }
            None => ensure!(ended.by_evidence_or_wait() && named(&ended).is_empty(), "{what}"),
        }
        let log = process.text(Stream::Error);
        let has_events = !log.contains("the Event could not be written");
        ensure!(has_events == (agent.without.as_deref() != Some("events")), "{what}\n{log}");
    }
    let told = cluster.api().get("/apis/events.k8s.io/v1/namespaces/default/events")?;
    let on = |pod: &str| {
        told["items"].as_array().into_iter().flatten().filter(|event| event["regarding"]["name"] == pod).count()
    };
    ensure!(on("whole") == 2 && on("no-events") == 0, "{told:#}");
    Ok(())
}
