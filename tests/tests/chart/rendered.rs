//! What the chart makes of values.

use std::fs;

use anyhow::{Context, Result, ensure};
use lastsyn::config::{self, Arguments, Config};
use lastsyn_tests::{
    kubernetes::Right,
    manifests::{container, kind, pod_spec},
};
use serde_json::{Value, json};

use crate::variants::{self, Example, chart, of_a_release, of_the_sidecar, render, variables};

/// What the agent makes of its container's environment.
fn configuration(pod: &Value) -> Result<Config> {
    let agent = container(pod, "lastsyn").context("no agent")?;
    Ok(config::load(&Arguments::default(), variables(agent).0)?)
}

#[test]
fn both_charts_lint_without_a_word_in_every_variant() -> Result<()> {
    let example = Example::new()?;
    for (name, values) in of_the_sidecar() {
        let said = example.chart.lint(&json!({"lastsyn": values}))?;
        ensure!(said.is_empty(), "{name}: {said:?}");
    }
    for (name, values) in of_a_release() {
        let said = chart().lint(&values)?;
        ensure!(said.is_empty(), "{name}: {said:?}");
    }
    ensure!(!chart().lint(&json!({"mode": "other"}))?.is_empty(), "the linter does not look at values");
    Ok(())
}

#[test]
fn the_agent_reads_from_its_environment_what_the_values_say() -> Result<()> {
    let said = json!({
        "listeners": {"watch": [8080, 8443], "exclude": [8404], "ignoreSources": ["192.0.2.0/24", "2001:db8::/32"]},
        "afterEnd": {"linger": "1s"},
        "drain": {"quietPeriod": "3s", "exitAtConnections": 1_000_000},
        "routing": {"accept": ["headless/web"], "ignoreNodes": "kubernetes.io/os=windows", "poll": {"interval": "500ms"}},
        "loadBalancer": {"window": "5s"},
        "readiness": {"failAfter": "40s", "upstream": {"web": "http://127.0.0.1:8080/ready"}},
        "proxy": {
            "kind": "http",
            "http": {"announce": {"method": "PUT", "url": "http://127.0.0.1:8080/drain", "status": 202}},
        },
        "sensor": {"strategy": "packet", "reattach": false},
        "log": {"level": "off", "format": "text"},
    });
    // The pod of `helm test` has the same environment as an agent, and nothing of the example's.
    let values = json!({"config": said, "maxWait": "1m5s", "stopReserve": "7s", "port": 19999});
    let release = render(&chart(), values)?;
    let pod = release.iter().find_map(pod_spec).context("no pod")?;
    let check = container(pod, "check").context("no container")?;

    let mut file = said;
    for (section, key, value) in
        [("drain", "maxWait", "1m5s"), ("drain", "stopReserve", "7s"), ("server", "address", "[::]:19999")]
    {
        file[section][key] = json!(value);
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("lastsyn.yaml");
    fs::write(&path, file.to_string())?;
    let wanted = config::load(&Arguments { file: Some(path), values: Vec::new() }, Vec::new())?;
    let (plain, fields) = variables(check);
    let read = config::load(&Arguments::default(), plain)?;
    ensure!(read == wanted, "{read:#?}\n{wanted:#?}");
    ensure!(wanted != Config::default(), "nothing was said");
    let fields: Vec<_> = fields.iter().map(|(name, field)| (name.as_str(), field.as_str())).collect();
    let downward = [
        ("HOST_IPS", "status.hostIPs"),
        ("NODE_NAME", "spec.nodeName"),
        ("POD_IPS", "status.podIPs"),
        ("POD_NAME", "metadata.name"),
        ("POD_NAMESPACE", "metadata.namespace"),
        ("POD_UID", "metadata.uid"),
    ];
    ensure!(fields == downward, "{fields:?}");
    Ok(())
}

#[test]
fn the_longest_drain_decides_for_the_agent_the_hook_and_the_pod() -> Result<()> {
    let example = Example::new()?;
    for (max_wait, stop_reserve, bound, grace) in
        [("20s", "10s", 20, 30), ("2m", "10s", 120, 130), ("1m30s", "1m", 90, 150), ("5s", "2s", 5, 7)]
    {
        let pod = example.pod(&json!({"maxWait": max_wait, "stopReserve": stop_reserve}))?;
        ensure!(pod["terminationGracePeriodSeconds"] == grace, "{max_wait}: {pod:#}");
        ensure!(configuration(&pod)?.drain.bound().as_secs() == bound, "{max_wait}");
        let server = container(&pod, "haproxy").context("no server")?;
        let command = &server["lifecycle"]["preStop"]["exec"]["command"];
        ensure!(
            *command == json!(["/run/lastsyn/lastsyn", "drain", "--max-wait", format!("{}s", bound + 1)]),
            "{command}"
        );
        ensure!(bound + 1 < grace);
    }
    Ok(())
}

#[test]
fn an_agent_that_only_observes_gives_the_server_no_hook() -> Result<()> {
    let example = Example::new()?;
    let pod = example.pod(&json!({"config": {"mode": "observe"}}))?;
    ensure!(configuration(&pod)?.mode == config::Mode::Observe);
    let server = container(&pod, "haproxy").context("no server")?;
    ensure!(server["lifecycle"] == json!({}), "{server:#}");
    // What tells it of the termination's beginning stays.
    let agent = container(&pod, "lastsyn").context("no agent")?;
    let mark = &agent["lifecycle"]["preStop"]["exec"]["command"];
    ensure!(*mark == json!(["lastsyn", "drain", "--mark"]), "{agent:#}");
    Ok(())
}

#[test]
fn s8_the_agent_has_no_part_in_the_pods_readiness_or_start() -> Result<()> {
    let example = Example::new()?;
    for (name, values) in of_the_sidecar() {
        let pod = example.pod(&values)?;
        let agent = container(&pod, "lastsyn").context("no agent")?;
        ensure!(agent["livenessProbe"]["httpGet"]["path"] == "/healthz", "{name}: {agent:#}");
        ensure!(agent.get("readinessProbe").is_none() && agent.get("startupProbe").is_none(), "{name}: {agent:#}");
        ensure!(agent.pointer("/lifecycle/postStart").is_none(), "{name}: {agent:#}");
        // A native sidecar is one that Kubernetes restarts among the init containers.
        let native = values["mode"] != "container";
        let is_first =
            pod["initContainers"].as_array().is_some_and(|list| list.iter().any(|one| one["name"] == "lastsyn"));
        ensure!(is_first == native && (agent["restartPolicy"] == "Always") == native, "{name}: {pod:#}");
    }
    Ok(())
}

#[test]
fn the_agent_has_the_rights_of_its_variant_and_the_token_alone() -> Result<()> {
    let example = Example::new()?;
    for (name, values) in of_the_sidecar() {
        let pod = example.pod(&values)?;
        let lists = ["initContainers", "containers"].into_iter().filter_map(|list| pod[list].as_array());
        for one in lists.flatten() {
            let mounts = one["volumeMounts"].as_array().context("no mounts")?;
            let has_token = mounts.iter().any(|mount| mount["name"] == "lastsyn-token");
            let asks = values.pointer("/config/routing/enabled").is_none() && values["fence"]["source"] != "fence";
            ensure!(has_token == (asks && one["name"] == "lastsyn"), "{name}: {one:#}");
            let context = &one["securityContext"];
            ensure!(context["capabilities"]["drop"] == json!(["ALL"]), "{name}: {one:#}");
            ensure!(
                context["readOnlyRootFilesystem"] == true && context["seccompProfile"]["type"].is_string(),
                "{name}: {one:#}"
            );
            let added = match (one["name"].as_str(), values["security"].as_str().unwrap_or("bpf")) {
                (Some("lastsyn"), "bpf") => json!(["BPF", "NET_ADMIN"]),
                (Some("lastsyn"), "compat") => json!(["BPF", "NET_ADMIN", "SYS_ADMIN"]),
                (Some("lastsyn"), "net-raw") => json!(["NET_RAW"]),
                _ => Value::Null,
            };
            ensure!(context["capabilities"]["add"] == added, "{name}: {one:#}");
            ensure!((context["runAsUser"] == 0) != added.is_null(), "{name}: {one:#}");
            ensure!(context["runAsNonRoot"] == added.is_null(), "{name}: {one:#}");
        }
        ensure!(pod["automountServiceAccountToken"] == false, "{name}: {pod:#}");
        let volumes = pod["volumes"].as_array().context("no volumes")?;
        ensure!(volumes.iter().all(|volume| volume.get("hostPath").is_none()), "{name}: {pod:#}");
    }
    Ok(())
}

/// `rights.rs` shows that with these, as rendered, an agent does all that it can, and what the lack of each costs.
#[test]
fn the_roles_have_the_rules_that_agents_are_tested_with_and_no_other() -> Result<()> {
    let granted = |manifests: &[Value], wanted: &str| -> Vec<Value> {
        let roles = manifests.iter().filter(|manifest| kind(manifest) == wanted);
        roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()).collect()
    };
    let tested = |of_cluster| -> Vec<Value> {
        Right::ALL
            .iter()
            .map(|right| right.rule())
            .filter(|(wide, _)| *wide == of_cluster)
            .map(|(_, rule)| rule)
            .collect()
    };
    for manifests in [Example::new()?.render(&json!({}))?, render(&chart(), json!({}))?] {
        ensure!(granted(&manifests, "ClusterRole") == tested(true), "{manifests:#?}");
        let (mut namespaced, mut wanted) = (granted(&manifests, "Role"), tested(false));
        for rules in [&mut namespaced, &mut wanted] {
            rules.sort_by_key(ToString::to_string);
        }
        ensure!(namespaced == wanted, "{manifests:#?}");
    }
    let several = render(&chart(), json!({"agents": [{"namespace": "edge", "serviceAccounts": ["gateway"]}]}))?;
    let bindings = several.iter().filter(|manifest| kind(manifest).ends_with("Binding"));
    let bound: Vec<String> =
        bindings.map(|one| format!("{} {} {}", kind(one), one["metadata"]["namespace"], one["subjects"])).collect();
    let subject = |name: &str, namespace: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
    let (gateway, own) = (subject("gateway", "edge"), subject("web-lastsyn", variants::NAMESPACE));
    let wanted = [
        format!("RoleBinding \"edge\" {}", json!([gateway])),
        format!("RoleBinding \"shop\" {}", json!([own])),
        format!("ClusterRoleBinding null {}", json!([gateway, own])),
    ];
    ensure!(bound == wanted, "{bound:#?}");
    Ok(())
}

#[test]
fn as_a_dependency_it_installs_nothing_by_itself() -> Result<()> {
    let example = Example::new()?;
    let kinds = |sidecar: Value| -> Result<Vec<String>> {
        Ok(example.render(&sidecar)?.iter().map(|manifest| kind(manifest).to_owned()).collect())
    };
    let with_account = kinds(json!({}))?.iter().filter(|kind| *kind == "ServiceAccount").count();
    ensure!(with_account == 1, "the example's own, and no second one");
    ensure!(kinds(json!({"install": "always"}))?.iter().filter(|kind| *kind == "ServiceAccount").count() == 2);
    ensure!(render(&chart(), json!({"install": "never"}))?.is_empty());
    Ok(())
}

#[test]
fn values_that_cannot_work_are_refused_with_the_reason() -> Result<()> {
    let example = Example::new()?;
    for (values, reason) in [
        (json!({"hostUsers": false}), "set security to net-raw, or to none"),
        (json!({"hostUsers": false, "security": "compat"}), "CAP_BPF counts only in the node's own user namespace"),
        (json!({"maxWait": "0s"}), "no drain holds at all"),
        (json!({"stopReserve": "1s"}), "at least 2s"),
        (json!({"maxWait": "20"}), "maxWait"),
        (json!({"config": {"drain": {"maxWait": "3s"}}}), "config.drain.maxWait is what `maxWait` says"),
        (json!({"config": {"server": {"address": "[::]:1"}}}), "config.server.address is what `port` says"),
        (json!({"config": {"pod": {"name": "x"}}}), "config.pod.name is set by the chart itself"),
        (json!({"config": {"drain": {"quitePeriod": "3s"}}}), "'quitePeriod' not allowed"),
        (json!({"security": "everything"}), "security"),
        (json!({"fence": {"source": "fence"}}), "there is no fence"),
        (
            json!({"fence": {"enabled": true}, "config": {"routing": {"fence": "http://a"}}}),
            "config.routing.fence is what `fence.url` says",
        ),
        (json!({"config": {"routing": {"source": "fence"}}}), "config.routing.source is what `fence.source` says"),
        (json!({"config": {"fence": {"address": "[::]:1"}}}), "config.fence.address is what `fence.port` says"),
        (json!({"quietPeriod": "3s"}), "'quietPeriod' not allowed"),
    ] {
        let refusal = example.refusal(&values)?;
        ensure!(refusal.contains(reason), "{values}: {refusal}");
    }
    let release = render(&chart(), json!({"networkPolicy": {"create": true}}));
    let refusal = release.err().context("a policy that lets agents reach nothing")?.to_string();
    ensure!(refusal.contains("networkPolicy.nodes.cidrs"), "{refusal}");
    Ok(())
}
