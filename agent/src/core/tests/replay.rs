//! What is recorded of a drain is enough to make the decision again.

use super::{
    cluster::{LEAVING, READY, with_routing},
    truth::ms,
    world::{World, settings},
};
use crate::core::settings::Settings;

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
    world.truth.drop_syn(super::truth::port(80), crate::core::listener::Family::V4, world.now);
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
        world.say(crate::core::cluster::ClusterEvent::SliceWritten(slice.clone()));
    }
    assert!(world.core.recording().is_none());
}
