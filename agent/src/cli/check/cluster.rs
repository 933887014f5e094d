//! What the agent may ask of the cluster, and what the lack of each right costs.

use std::collections::BTreeSet;

use super::table::Line;
use crate::{
    cluster::{Access, HealthAnswer, OwnPod, Preflight, Tried, preflight},
    config::{Config, FencePlace, Routing, RoutingSource},
    core::verdict::NotObserved,
    fence::look::FenceStatus,
};

/// What each right is for, what is lost without it, and how it is given.
struct Right {
    what: &'static str,
    without: &'static str,
    /// How the fence is given it, where the pod is told by the fence.
    of_fence: &'static str,
}

const SLICES: Right = Right {
    what: "endpointslices",
    without: "nothing is known of routing, and drains end `unverified` once it is quiet; let the pod's service account \
              list and watch endpointslices (discovery.k8s.io) in its namespace",
    of_fence: "nothing is known of routing, and drains end `unverified` once it is quiet; let the fence list and watch \
               endpointslices (discovery.k8s.io) and get pods everywhere, and see that it knows this pod's address",
};
const SERVICES: Right = Right {
    what: "services",
    without: "policies `Local` and healthCheckNodePorts are not known, and drains end `unverified`; let the pod's service \
              account list and watch services in its namespace",
    of_fence: "policies `Local` and healthCheckNodePorts are not known, and drains end `unverified`; let the fence list and \
               watch services everywhere",
};
const NODES: Right = Right {
    what: "nodes",
    without: "no node is asked whether it has heard, and drains end `unverified`; let the pod's service account list nodes \
              (a ClusterRole)",
    of_fence: "",
};
const POD: Right = Right {
    what: "pod",
    without: "hostPort, hostNetwork and a load balancer's readiness gate are not known, and drains end `unverified`; nor are \
              the grace period and the hooks; let the pod's service account get pods in its namespace, and set POD_NAME by \
              the downward API",
    of_fence: "hostPort, hostNetwork and a load balancer's readiness gate are not known, and drains end `unverified`; nor are \
               the grace period and the hooks; let the fence get pods everywhere",
};

/// A line for each thing that was tried, and what the pod is like, where that could be read.
pub(super) async fn lines(config: &Config) -> (Vec<Line>, Option<OwnPod>) {
    if !config.routing.enabled {
        let advice = "clients that pause for longer than drain.quietPeriod while a node lags are not waited for";
        return (vec![Line::note("routing", "not watched: routing.enabled is false", advice)], None);
    }
    let Some(access) = Access::of(config) else {
        let advice = "in a pod with a service account, drains wait until every node has heard of the withdrawal";
        let found = "not watched: there is neither a service account nor KUBECONFIG";
        return (vec![Line::note("routing", found, advice)], None);
    };
    let (mut lines, own) = match preflight(&access, &config.pod, &config.routing).await {
        Ok(tried) => (of(&access, &config.routing, &tried), tried.own),
        Err(error) => (vec![Line::warning("api", error.to_string(), SLICES.without)], None),
    };
    lines.extend(identity(config));
    if let Some(place) = config.routing.fence.place() {
        lines.push(fence(place, crate::fence::client::status(place).await));
    }
    (lines, own)
}

/// Whether the fence answers. Nothing is asked that would make it write.
fn fence(place: &FencePlace, status: Result<String, String>) -> Line {
    let advice = "drains go on by what the agent itself can ask, and end `synced` or `unverified`; see that `lastsyn fence` \
                  runs, and that a network policy lets this pod reach it";
    match status.map(|text| serde_json::from_str::<FenceStatus>(&text)) {
        Ok(Ok(status)) if status.trouble.is_empty() => {
            Line::ok("fence", format!("{place} answers: {}", status.identity))
        }
        Ok(Ok(status)) => {
            let trouble: Vec<_> = status.trouble.iter().map(|one| format!("{}: {}", one.family, one.why)).collect();
            Line::warning("fence", format!("{place} answers, and cannot write: {}", trouble.join("; ")), advice)
        }
        Ok(Err(_)) => Line::warning("fence", format!("what answers at {place} is no fence"), advice),
        Err(why) => Line::warning("fence", format!("{place} does not answer: {why}"), advice),
    }
}

fn of(access: &Access, routing: &Routing, tried: &Preflight) -> Vec<Line> {
    let Preflight { slices, services, nodes, pod, paths, health, own: _ } = tried;
    let source = routing.source;
    let mut lines = vec![if access.has_answered() {
        Line::ok("api", format!("the API server answers, {}", access.words()))
    } else {
        let found = format!("the API server does not answer, {}", access.words());
        let advice = match source {
            RoutingSource::Api => "an egress policy of the namespace may forbid it; drains end `unverified`",
            RoutingSource::Fence => {
                "the fence does not run, or a network policy keeps this pod from it; drains end `unverified`"
            }
        };
        Line::warning("api", found, advice)
    }];
    lines.extend([right(&SLICES, source, slices), right(&SERVICES, source, services)]);
    lines.extend(nodes.as_ref().map(|nodes| right(&NODES, source, nodes)));
    lines.push(right(&POD, source, pod));
    lines.extend(paths.iter().map(|path| unseen(path, &routing.accept)));
    lines.extend(health.iter().map(|(count, answer)| match answer {
        HealthAnswer::Status => Line::ok("kube-proxy", format!("{count} of the nodes give a status")),
        HealthAnswer::Other(why) => {
            let advice = "these nodes cannot be confirmed: an egress policy, a loopback address (k3s), another proxy, or a \
                          kube-proxy before Kubernetes 1.33; routing.ignoreNodes leaves them out by their labels";
            Line::warning("kube-proxy", format!("{count} of the nodes: {why}"), advice)
        }
    }));
    lines
}

/// W8: a way to the pod that no node's rules speak for.
fn unseen(path: &NotObserved, accepted: &BTreeSet<String>) -> Line {
    let NotObserved { what, name, why, .. } = path;
    let Some(name) = name else {
        return Line::warning("path", format!("{what}: {why}"), "drains end `unverified` at best");
    };
    let entry = format!("{what}/{name}");
    if accepted.contains(&entry) {
        return Line::ok("path", format!("{what} {name} is acknowledged (routing.accept)"));
    }
    let advice = format!("drains end `unverified` at best; routing.accept: [{entry}] acknowledges it");
    Line::warning("path", format!("{what} {name}: {why}"), advice)
}

fn right(right: &Right, source: RoutingSource, tried: &Tried) -> Line {
    match tried {
        Ok(found) => Line::ok(right.what, found.as_str()),
        Err(why) => Line::warning(
            right.what,
            why.as_str(),
            match source {
                RoutingSource::Api => right.without,
                RoutingSource::Fence => right.of_fence,
            },
        ),
    }
}

fn identity(config: &Config) -> Option<Line> {
    let pod = &config.pod;
    let missing: Vec<_> = [
        ("POD_NAME", pod.name.is_empty()),
        ("POD_NAMESPACE", pod.namespace.is_empty()),
        ("POD_UID", pod.uid.is_empty()),
        ("POD_IPS", pod.ips.is_empty()),
        ("NODE_NAME", pod.node_name.is_empty()),
        ("HOST_IPS", pod.host_ips.is_empty()),
    ]
    .into_iter()
    .filter_map(|(name, missing)| missing.then_some(name))
    .collect();
    let advice = "give them by the downward API; without NODE_NAME a Service with a `Local` policy holds drains for as long \
                  as its slices list the pod, and without HOST_IPS no healthCheckNodePort is asked";
    (!missing.is_empty()).then(|| Line::warning("identity", format!("not set: {}", missing.join(", ")), advice))
}

#[cfg(test)]
mod tests {
    use super::{super::table::Table, *};

    fn mesh(name: &str) -> NotObserved {
        let (what, why) = ("mesh".to_owned(), "why".to_owned());
        NotObserved { what, name: Some(name.to_owned()), family: None, why }
    }

    #[test]
    fn each_right_that_is_missing_says_what_it_costs_and_how_to_give_it() {
        let denied = || Err("services is forbidden".to_owned());
        let tried = Preflight {
            slices: Ok("may be listed and watched".to_owned()),
            services: denied(),
            nodes: Some(denied()),
            pod: denied(),
            own: None,
            paths: BTreeSet::from([mesh("istio"), mesh("linkerd")]),
            health: vec![(2, HealthAnswer::Status), (1, HealthAnswer::Other("connection refused".to_owned()))],
        };
        let routing = Routing { accept: BTreeSet::from(["mesh/linkerd".to_owned()]), ..Config::default().routing };
        let text = Table(of(&Access::by_file("/none"), &routing, &tried)).to_string();
        assert!(
            text.contains("mesh istio: why\n") && text.contains("routing.accept: [mesh/istio] acknowledges it"),
            "{text}"
        );
        assert!(text.contains("mesh linkerd is acknowledged"), "{text}");
        let line = |what: &str| text.lines().position(|line| line.contains(what)).expect(what);
        assert!(text.lines().nth(line("endpointslices")).is_some_and(|line| line.starts_with("ok")), "{text}");
        for (what, cost) in [("services", "Local"), ("nodes", "list nodes"), ("pod ", "hostPort")] {
            let found = line(&format!("warn  {what}"));
            assert!(text.lines().nth(found + 1).is_some_and(|advice| advice.contains(cost)), "{what}: {text}");
        }
        assert!(
            text.contains("2 of the nodes give a status") && text.contains("1 of the nodes: connection refused"),
            "{text}"
        );
    }
}
