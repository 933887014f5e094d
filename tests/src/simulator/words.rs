//! What a timeline says.

use lastsyn::core::{
    cluster::{ClusterEvent, HealthOutcome, HealthStatus, LocalEndpointsOutcome, NodeTime, ReadOutcome, Slice},
    listener::Family,
    verdict::Verdict,
};

use super::{
    api::{Content, ObjectId},
    routes::POD,
    translate,
};

/// Of what the agent hears, where it asks for it again and again.
pub(super) fn subject(event: &ClusterEvent) -> Option<String> {
    match event {
        ClusterEvent::Health(report) => Some(report.node.to_string()),
        ClusterEvent::LocalEndpoints(report) => Some(format!("port of {}", report.service)),
        ClusterEvent::Fence(progress) => Some(format!("fence {} {}", progress.node, progress.family)),
        _ => None,
    }
}

/// What the agent hears.
pub(super) fn event(event: &ClusterEvent) -> String {
    match event {
        ClusterEvent::SlicesListed(slices) => {
            format!("lists the slices: {}", slices.iter().map(slice).collect::<Vec<_>>().join("; "))
        }
        ClusterEvent::SliceWritten(written) => format!("hears of slice {}", slice(written)),
        ClusterEvent::SliceRemoved(name) => format!("hears that slice {name} is gone"),
        ClusterEvent::ServicesListed(services) => format!("lists {} Services", services.len()),
        ClusterEvent::ServiceWritten(service) => format!(
            "hears of Service {}: external {:?}, internal {:?}",
            service.name, service.external, service.internal
        ),
        ClusterEvent::NodesListed(nodes) => format!("lists {} nodes", nodes.len()),
        ClusterEvent::NodeAdded(node) => format!("hears of node {}", node.name),
        ClusterEvent::NodeRemoved(name) => format!("hears that node {name} is gone"),
        ClusterEvent::Health(report) => {
            format!("node {} over connection {}: {}", report.node, report.connection.0, health(&report.outcome))
        }
        ClusterEvent::LocalEndpoints(report) => match report.outcome {
            LocalEndpointsOutcome::Endpoints(endpoints) => format!("the health-check node port says {endpoints}"),
            outcome => format!("the health-check node port: {outcome:?}"),
        },
        ClusterEvent::Fence(progress) => {
            format!(
                "the fence has seen node {} {} through (request {})",
                progress.node, progress.family, progress.request.0
            )
        }
        ClusterEvent::FenceNodes { nodes, as_of: _ } => format!("the fence knows {} nodes", nodes.len()),
        ClusterEvent::FenceReach { node, family, reach } => {
            format!("the fence says of node {node} {family}: {reach:?}")
        }
        ClusterEvent::FenceAnswers => "the fence takes its question".to_owned(),
        ClusterEvent::FenceFails(why) => format!("the fence fails: {why}"),
        ClusterEvent::AttemptThrough { node, family, .. } => format!("a {family} SYN came through node {node}"),
        ClusterEvent::ConsistentRead(id, ReadOutcome::Shows(snapshot)) => {
            let slices: Vec<String> =
                snapshot.slices.iter().map(|(name, version)| format!("{name}@{}", version.0)).collect();
            format!("read {} shows {}", id.0, slices.join(" "))
        }
        ClusterEvent::ConsistentRead(id, outcome) => format!("read {}: {outcome:?}", id.0),
        other => format!("{other:?}"),
    }
}

fn health(outcome: &HealthOutcome) -> String {
    match outcome {
        HealthOutcome::Status(HealthStatus { v4, v6 }) => {
            let of = |(family, health): (Family, Option<lastsyn::core::cluster::FamilyHealth>)| {
                health
                    .map(|health| format!("{family} stamp {}, healthy {}", stamp(health.last_updated), health.healthy))
            };
            let parts: Vec<String> = [(Family::V4, *v4), (Family::V6, *v6)].into_iter().filter_map(of).collect();
            parts.join("; ")
        }
        other => format!("{other:?}"),
    }
}

/// Seconds by the node's clock; the world begins at 1000.
fn stamp(stamp: NodeTime) -> String {
    format!("{}.{:03}", stamp.0 / 1_000_000_000, stamp.0.rem_euclid(1_000_000_000) / 1_000_000)
}

fn slice(slice: &Slice) -> String {
    let others = slice.endpoints.iter().filter(|endpoint| endpoint.is_ready()).count();
    let pod = slice.endpoints.iter().find(|endpoint| endpoint.address == translate::address(POD, slice.family));
    let pod = pod.map_or_else(
        || "without the pod".to_owned(),
        |pod| {
            format!("pod ready {}, serving {}, terminating {}", pod.is_ready(), pod.is_serving(), pod.is_terminating())
        },
    );
    format!("{}@{} ({}; {others} of {} ready)", slice.name, slice.version, pod, slice.endpoints.len())
}

/// What is written.
pub(super) fn content(object: ObjectId, content: &Content) -> String {
    match content {
        Content::Gone => format!("slice {} is gone", object.0),
        Content::Marker(family, value) => format!("the fence's {family} marker is {value}"),
        Content::Slice(body) => {
            let ready = body.endpoints.iter().filter(|entry| entry.ready.unwrap_or(true)).count();
            let pod = body.endpoints.iter().find(|entry| entry.pod == POD);
            let pod = pod.map_or_else(
                || "not in it".to_owned(),
                |entry| {
                    format!("ready {:?} serving {:?} terminating {:?}", entry.ready, entry.serving, entry.terminating)
                },
            );
            format!("slice {} ({}): the pod is {pod}; {ready} of {} ready", object.0, body.family, body.endpoints.len())
        }
    }
}

/// How it ended.
pub(super) fn end(verdict: Option<&Verdict>, naive: bool) -> String {
    let Some(verdict) = verdict else {
        return if naive { "THE NAIVE RULE CLAIMS".to_owned() } else { "THE CALLER'S OWN BOUND".to_owned() };
    };
    let evidence = verdict.routing.iter().flat_map(|routing| &routing.evidence);
    let evidence: Vec<String> = evidence.map(|node| format!("{} {} by {}", node.node, node.family, node.by)).collect();
    let unseen: Vec<String> = verdict
        .not_observed
        .iter()
        .map(|thing| format!("{} {}: {}", thing.what, thing.name.as_deref().unwrap_or("-"), thing.why))
        .collect();
    format!(
        "VERDICT {}: {} ms; {}; assumes {:?}; not observed [{}]; held by {:?}",
        verdict.reason.name(),
        verdict.duration_ms,
        evidence.join(", "),
        verdict.assumes,
        unseen.join(", "),
        verdict.holding
    )
}
