//! The fence that a release installs, and the agents that are wired to it.

use anyhow::{Context, Result, ensure};
use lastsyn::config::{self, Arguments, RoutingSource};
use lastsyn_tests::{
    kubernetes::FenceRight,
    manifests::{container, kind, pod_spec},
};
use serde_json::{Value, json};

use crate::variants::{Example, NAMESPACE, chart, of_a_release, render, variables};

fn of_the_fence<'a>(manifests: &'a [Value], wanted: &str) -> Result<&'a Value> {
    let mut found = manifests.iter().filter(|manifest| {
        kind(manifest) == wanted && manifest["metadata"]["labels"]["app.kubernetes.io/component"] == "fence"
    });
    let first = found.next().with_context(|| format!("the fence has no {wanted}"))?;
    ensure!(found.next().is_none(), "the fence has more than one {wanted}");
    Ok(first)
}

fn release(values: Value) -> Result<Vec<Value>> {
    render(&chart(), values)
}

fn configuration(pod: &Value, name: &str) -> Result<config::Config> {
    let (plain, _) = variables(container(pod, name).with_context(|| format!("no container {name}"))?);
    Ok(config::load(&Arguments::default(), plain)?)
}

#[test]
fn two_replicas_one_budget_and_a_service_that_finds_them() -> Result<()> {
    let manifests = release(json!({"fence": {"enabled": true}}))?;
    let deployment = of_the_fence(&manifests, "Deployment")?;
    let pod = pod_spec(deployment).context("no pod")?;
    ensure!(deployment["spec"]["replicas"] == 2, "{deployment:#}");
    let labels = deployment["spec"]["template"]["metadata"]["labels"].as_object().context("labels")?;
    for selector in [
        &deployment["spec"]["selector"]["matchLabels"],
        &of_the_fence(&manifests, "Service")?["spec"]["selector"],
        &of_the_fence(&manifests, "PodDisruptionBudget")?["spec"]["selector"]["matchLabels"],
    ] {
        let selected = selector.as_object().context("a selector")?;
        ensure!(
            selected.len() == 3 && selected.iter().all(|(key, value)| labels.get(key) == Some(value)),
            "{selector}"
        );
        // Agents' own pods are of the same release.
        ensure!(selected["app.kubernetes.io/component"] == "fence", "{selector}");
    }
    ensure!(of_the_fence(&manifests, "PodDisruptionBudget")?["spec"]["maxUnavailable"] == 1);
    let fence = container(pod, "fence").context("no container")?;
    ensure!(fence["command"] == json!(["lastsyn", "fence"]), "{fence:#}");
    ensure!(
        fence["readinessProbe"]["httpGet"]["path"] == "/readyz"
            && fence["livenessProbe"]["httpGet"]["path"] == "/healthz"
    );
    let context = &fence["securityContext"];
    ensure!(context["runAsNonRoot"] == true && context["readOnlyRootFilesystem"] == true, "{context}");
    ensure!(
        context["capabilities"] == json!({"drop": ["ALL"]}) && context["allowPrivilegeEscalation"] == false,
        "{context}"
    );
    ensure!(pod.get("hostNetwork").is_none() && pod.get("volumes").is_none(), "{pod:#}");
    let alone = release(json!({"fence": {"enabled": true, "replicas": 1}}))?;
    ensure!(of_the_fence(&alone, "PodDisruptionBudget").is_err(), "one replica, and no node could ever be drained");
    ensure!(release(json!({}))?.iter().all(|one| kind(one) != "Deployment"), "a fence that nobody asked for");
    Ok(())
}

/// `tests/kubernetes_fence_callers.rs` and `tests/kubernetes_fence_source.rs` show that with these a fence does all that it can.
#[test]
fn the_fence_has_the_rules_that_it_is_tested_with_and_no_other() -> Result<()> {
    for (values, everywhere) in [
        (json!({"fence": {"enabled": true}}), &FenceRight::DOOR[..]),
        (json!({"fence": {"enabled": true, "source": "fence"}}), &FenceRight::SOURCE[..]),
        (json!({"fence": {"enabled": true}, "config": {"fence": {"callers": "any"}}}), &[][..]),
    ] {
        let manifests = release(values)?;
        for (role, of_cluster) in [("Role", false), ("ClusterRole", true)] {
            let granted = of_the_fence(&manifests, role)?["rules"].as_array().cloned().unwrap_or_default();
            let tested = FenceRight::rules(everywhere).into_iter().filter(|(wide, _)| *wide == of_cluster);
            ensure!(granted == tested.map(|(_, rule)| rule).collect::<Vec<_>>(), "{granted:#?}");
            let binding = of_the_fence(&manifests, &format!("{role}Binding"))?;
            let subject = json!([{"kind": "ServiceAccount", "name": "web-lastsyn-fence", "namespace": NAMESPACE}]);
            ensure!(binding["subjects"] == subject, "{binding:#}");
        }
    }
    Ok(())
}

#[test]
fn the_fence_reads_its_own_part_of_the_configuration() -> Result<()> {
    let said = json!({
        "fence": {"spacing": "2s", "maxNodes": 500}, "log": {"level": "debug"},
        "routing": {"ignoreNodes": "a=b", "poll": {"timeout": "3s"}, "watchLag": "4s"}, "drain": {"quietPeriod": "3s"},
    });
    let manifests = release(json!({"fence": {"enabled": true, "port": 81}, "config": said}))?;
    let pod = pod_spec(of_the_fence(&manifests, "Deployment")?).context("no pod")?;
    let read = configuration(pod, "fence")?;
    ensure!(read.fence.spacing.as_secs() == 2 && read.fence.max_nodes == 500 && read.fence.address.port() == 81);
    ensure!(
        read.routing.ignore_nodes == "a=b" && read.routing.poll.timeout.as_secs() == 3 && read.log.level == "debug"
    );
    ensure!(read.drain == config::Config::default().drain, "what is not its own");
    let (_, fields) = variables(container(pod, "fence").context("no container")?);
    ensure!(
        fields.keys().map(String::as_str).collect::<Vec<_>>() == ["POD_IPS", "POD_NAME", "POD_NAMESPACE"],
        "{fields:?}"
    );
    Ok(())
}

#[test]
fn agents_find_the_fence_and_are_told_by_it_without_a_token() -> Result<()> {
    let place = |config: &config::Config| config.routing.fence.place().map(ToString::to_string);
    // The release's own, as the pod of `helm test` finds it.
    let manifests = release(json!({"fence": {"enabled": true, "port": 81}}))?;
    let service = of_the_fence(&manifests, "Service")?;
    let check = manifests.iter().filter(|one| kind(one) == "Pod").find_map(pod_spec).context("no check")?;
    let read = configuration(check, "check")?;
    let name = service["metadata"]["name"].as_str().context("a name")?;
    ensure!(place(&read) == Some(format!("http://{name}.{NAMESPACE}:81")) && service["spec"]["ports"][0]["port"] == 81);
    ensure!(read.routing.source == RoutingSource::Api);

    let example = Example::new()?;
    let url = "http://fence.elsewhere:81";
    let asks = configuration(&example.pod(&json!({"fence": {"url": url}}))?, "lastsyn")?;
    ensure!(place(&asks).as_deref() == Some(url) && asks.routing.source == RoutingSource::Api);
    let values = json!({"fence": {"url": url, "source": "fence"}});
    let pod = example.pod(&values)?;
    let told = configuration(&pod, "lastsyn")?;
    ensure!(place(&told).as_deref() == Some(url) && told.routing.source == RoutingSource::Fence);
    ensure!(!pod.to_string().contains("serviceAccountToken"), "{pod:#}");
    let granted = example.render(&values)?;
    ensure!(granted.iter().all(|manifest| !kind(manifest).contains("Role")), "{granted:#?}");
    // Without a fence nothing is said of one.
    let none = configuration(&example.pod(&json!({}))?, "lastsyn")?;
    ensure!(place(&none).is_none() && none.routing.source == RoutingSource::Api);
    Ok(())
}

#[test]
fn policies_let_agents_to_the_fence_and_the_fence_to_what_it_asks() -> Result<()> {
    let (_, values) = of_a_release()
        .into_iter()
        .find(|(_, values)| values["fence"]["source"] == "fence" && values["networkPolicy"]["create"] == true)
        .context("no such variant")?;
    let manifests = release(values)?;
    let fence = &of_the_fence(&manifests, "NetworkPolicy")?["spec"];
    let agents = fence["ingress"][0]["from"][0]["podSelector"]["matchLabels"].clone();
    ensure!(fence["ingress"][0]["ports"][0]["port"] == 81 && agents == json!({"lastsyn-agent": "true"}), "{fence:#}");
    let ports = fence["egress"][1]["ports"].clone();
    let asked = json!([{"protocol": "TCP", "port": 10256}, {"protocol": "TCP", "port": 30000, "endPort": 32767}]);
    ensure!(ports == asked && fence["egress"][0]["ports"][0]["port"] == 443, "{fence:#}");
    let of_agents: Vec<_> = manifests
        .iter()
        .filter(|one| {
            kind(one) == "NetworkPolicy" && one["metadata"]["labels"]["app.kubernetes.io/component"].is_null()
        })
        .collect();
    ensure!(of_agents.len() == 2, "{of_agents:#?}");
    for policy in of_agents {
        // The fence, and nothing else.
        let egress = policy["spec"]["egress"].as_array().context("egress")?;
        let to = &egress[0]["to"][0]["podSelector"]["matchLabels"];
        ensure!(egress.len() == 1 && egress[0]["ports"][0]["port"] == 81, "{policy:#}");
        let labels = &of_the_fence(&manifests, "Deployment")?["spec"]["template"]["metadata"]["labels"];
        ensure!(to.as_object().is_some_and(|to| to.iter().all(|(key, value)| labels[key] == *value)), "{policy:#}");
    }
    ensure!(of_the_fence(&manifests, "ServiceMonitor")?["metadata"]["labels"]["release"] == "prometheus");
    Ok(())
}
