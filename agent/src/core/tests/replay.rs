//! What is recorded of a drain is enough to make the decision again.

use std::sync::Arc;

use super::{
    cluster::{LEAVING, READY, node, with_routing},
    truth::{ms, port},
    world::{World, settings},
};
use crate::core::{
    cluster::{
        ClusterEvent, ObservationId, ReadId, ReadOutcome, ResourceVersion, ServiceName, SliceName, Snapshot,
        TrafficPolicy,
    },
    event::{Depth, Event},
    recording::weight,
    settings::Settings,
};

#[test]
fn replay_reaches_the_same_verdict() {
    let mut world = World::at_rest(with_routing());
    world.connect(80);
    world.run_to(1000);
    world.hook();
    world.run_to(1100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.connect(80);
    world.syncs(15_000);
    let answer = world.answers.first().expect("an answer").clone();
    let replayed = world.core.recording().expect("a recording").replay().expect("a verdict");
    assert_eq!(replayed, answer.verdict);
}

#[test]
fn replay_takes_in_what_was_before_the_drain() {
    let mut world = World::at_rest(settings());
    // A dropped SYN just before the hook's call holds the drain (E2a), and so does what was seen of the sensor.
    world.truth.drop_syn(port(80), crate::core::listener::Family::V4, world.now);
    world.look();
    world.run_to(500);
    world.hook();
    let answer = world.run_out().clone();
    assert!(answer.at_ms() > 7000);
    let replayed = world.core.recording().expect("a recording").replay().expect("a verdict");
    assert_eq!(replayed, answer.verdict);
}

#[test]
fn replay_of_a_drain_under_way_has_no_verdict() {
    let mut world = World::at_rest(settings());
    assert!(world.core.recording().is_none());
    world.hook();
    world.run_to(100);
    assert_eq!(world.core.recording().expect("a recording").replay(), None);
}

#[test]
fn replay_of_a_drain_that_was_too_long_to_be_kept_is_not_to_be_had() {
    let mut world = World::at_rest(Settings { max_wait: ms(600_000), quiet_period: ms(500_000), ..with_routing() });
    world.hook();
    let slice = world.write_slice(&[(1, READY); 200]);
    for _ in 0..80 {
        world.say(ClusterEvent::SliceWritten(slice.clone()));
    }
    assert!(world.core.recording().is_none());
    world.hook();
    assert!(world.core.recording().is_none(), "another caller, of the same drain");
}

#[test]
fn what_is_recorded_weighs_what_it_holds() {
    let mut world = World::at_rest(with_routing());
    let of = |event: ClusterEvent| weight(&Event::Cluster(ObservationId(1), Arc::new(event)));
    let slice = world.write_slice(&[(1, READY); 200]);
    assert_eq!(of(ClusterEvent::SliceWritten(slice.clone())), 604);
    assert_eq!(of(ClusterEvent::SlicesListed(vec![slice.clone(), slice])), 1208);
    let services = vec![world.cluster.service(TrafficPolicy::Cluster); 30];
    assert_eq!(of(ClusterEvent::ServicesListed(services)), 120);
    assert_eq!(of(ClusterEvent::NodesListed(vec![node("a"); 70])), 70);
    let names = |prefix: &str, count: u32| (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let version = || ResourceVersion("1".to_owned());
    let snapshot = Snapshot {
        slices: names("s", 20).into_iter().map(|name| (SliceName(name), version())).collect(),
        services: names("w", 7).into_iter().map(|name| (ServiceName(name), version())).collect(),
        nodes: Some(vec![node("a"); 5]),
    };
    assert_eq!(of(ClusterEvent::ConsistentRead(ReadId(1), ReadOutcome::Shows(snapshot))), 59);

    let weigh = |evidence| weight(&Event::Evidence(Box::new(evidence)));
    world.truth.established = [(port(80), 9), (port(443), 9)].into();
    for _ in 0..5 {
        world.begin(80);
    }
    let evidence = |depth| world.truth.evidence(depth, world.now);
    assert_eq!(weigh(evidence(Depth::Listeners)), 8 + 2 * 4 + 2);
    assert_eq!(weigh(evidence(Depth::Handshakes)), 8 + 2 * 4 + 2 + 5);
    assert_eq!(weigh(evidence(Depth::Connections)), 8 + 2 * 4 + 2 + 5 + 2);
}
