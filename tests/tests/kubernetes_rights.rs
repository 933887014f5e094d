//! Every right that the agent has is optional: without one it drains, names what it lost, and `check` says how to give it back. It
//! has those of the documented calls, and no other.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig,
    kubernetes::{Access, Api, Cluster, Mode, PORT, PodSpec, Refused, Right, ServiceSpec, Workload},
};
use serde_json::{Value, json};

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

/// What the API server says a client may do in a namespace: each group, resource and verb.
fn may(api: &Api, namespace: &str) -> Result<BTreeSet<(String, String, String)>> {
    let review = json!({"spec": {"namespace": namespace}});
    let answer = api.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review)?;
    ensure!(answer.pointer("/status/incomplete") == Some(&Value::Bool(false)), "{answer:#}");
    let words = |rule: &Value, key: &str| -> Vec<String> {
        rule[key].as_array().into_iter().flatten().filter_map(|word| Some(word.as_str()?.to_owned())).collect()
    };
    let mut all = BTreeSet::new();
    for rule in answer.pointer("/status/resourceRules").and_then(Value::as_array).context("no rules")? {
        for group in words(rule, "apiGroups") {
            for resource in words(rule, "resources") {
                all.extend(words(rule, "verbs").into_iter().map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    Ok(all)
}

#[test]
fn the_rights_are_exactly_those_of_the_documented_calls() -> Result<()> {
    let cluster = Cluster::up(Mode::Nftables)?;
    let pod = cluster.pod(0, &PodSpec::new("web", "web", PORT))?;
    let api = cluster.api_as(&cluster.access("agent", &Right::ALL)?)?;
    // What Kubernetes lets every ServiceAccount do is no right that is given to the agent.
    let nobody = cluster.api_as(&cluster.access("nobody", &[])?)?;
    let given = |namespace| anyhow::Ok(&may(&api, namespace)? - &may(&nobody, namespace)?);
    let of = |rights: &[(&str, &str, &str)]| -> BTreeSet<_> {
        rights.iter().map(|(group, resource, verb)| [*group, *resource, *verb].map(str::to_owned).into()).collect()
    };
    let nodes = ("", "nodes", "list");
    let slices = ["list", "watch"].map(|verb| ("discovery.k8s.io", "endpointslices", verb));
    let services = ["list", "watch"].map(|verb| ("", "services", verb));
    let here = [&slices[..], &services[..], &[("", "pods", "get"), nodes][..]].concat();
    ensure!(given("default")? == of(&here), "{:?}", given("default")?);
    ensure!(given("kube-system")? == of(&[nodes]), "{:?}", given("kube-system")?);

    // By what the API server does.
    let namespaced = "/api/v1/namespaces/default";
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let own = format!("{namespaced}/pods/{}", pod.name());
    for path in [slices, &format!("{namespaced}/services"), "/api/v1/nodes", &own] {
        api.get(path).with_context(|| path.to_owned())?;
    }
    let elsewhere = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices";
    let others = [
        format!("{namespaced}/pods"),
        format!("{namespaced}/secrets"),
        format!("{namespaced}/configmaps"),
        format!("{namespaced}/services/kubernetes"),
        format!("{slices}/kubernetes"),
        elsewhere.to_owned(),
        "/api/v1/nodes/node-a".to_owned(),
        "/api/v1/services".to_owned(),
    ];
    let is_denied = |outcome: Result<Value>| {
        outcome.err().is_some_and(|error| error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == 403))
    };
    for path in others {
        ensure!(is_denied(api.get(&path)), "{path} is not denied");
    }
    ensure!(is_denied(api.delete(&own, None)), "its own pod may be deleted");
    ensure!(is_denied(api.patch(&own, &json!({"metadata": {"labels": {"a": "b"}}}))), "its own pod may be changed");
    ensure!(
        is_denied(api.post(slices, &json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": []}))),
        "slices may be written"
    );
    Ok(())
}
