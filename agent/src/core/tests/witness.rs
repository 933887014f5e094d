//! S3: the namespace's own counter of handshakes bears witness to the sensor.

use super::{
    truth::{Truth, ms, port},
    world::{World, at, settings},
};
use crate::core::{event::Depth, journal::Transition, listener::Family, verdict::Reason, witness::Witness};

fn surplus(witness: &mut Witness, truth: &Truth, depth: Depth) -> Option<u64> {
    witness.surplus(&truth.evidence(depth, at(0)))
}

#[test]
fn s3_more_handshakes_than_syns_show_that_the_sensor_is_blind() {
    let mut world = World::at_rest(settings());
    world.run_to(100);
    world.hook();
    world.truth.sees = false;
    for tenth in 2..6 {
        world.run_to(tenth * 100).connect(80);
    }
    world.run_to(2200); // seen at 2100, where it would have ended
    assert!(world.answers.is_empty());
    assert!(world.journal().contains(&Transition::SensorBlind(4)));
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(4100), Reason::Unverified), "quiet by the counters, from then on");
    assert!(!answered.verdict.sensor.healthy);
    assert!(
        answered.verdict.not_observed.iter().any(|thing| thing.what == "sensor" && thing.why.starts_with("4 more"))
    );
}

#[test]
fn s3_a_blind_sensor_needs_the_counters_to_be_still() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.truth.sees = false;
    for second in 1..8 {
        world.run_to(second * 1500).connect(80);
        assert!(world.answers.is_empty());
    }
    let answered = world.run_out();
    assert!(answered.at >= at(12_500), "{}", answered.at_ms());
    assert_eq!(answered.reason(), Reason::Unverified);
}

#[test]
fn s3_connections_over_lo_and_to_other_ports_do_not_blind() {
    let mut world = World::at_rest(settings());
    world.hook();
    for _ in 0..10_000 {
        world.truth.connect(port(9), Family::V6, world.now);
    }
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(2000), Reason::Quiet));
}

#[test]
fn s3_handshakes_open_at_the_baseline_may_be_completed() {
    let mut world = World::at_rest(settings());
    let handshakes = [world.begin(80), world.begin(443), world.begin(9)];
    world.hook();
    for handshake in handshakes {
        world.truth.complete(handshake);
    }
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(2000), Reason::Quiet));
}

#[test]
fn s3_the_baselines_order_of_reading_makes_no_false_surplus() {
    // While the baseline is read, one handshake is completed after the counters and before they are read once more, and
    // another begins after the sensor's count and before the socket table.
    let mut truth = Truth::new(at(0));
    let first = truth.begin(port(80), Family::V4, at(0));
    let mut baseline = truth.evidence(Depth::Connections, at(0));
    truth.complete(first);
    let second = truth.begin(port(80), Family::V4, at(0));
    let late = truth.evidence(Depth::Connections, at(0));
    baseline.sockets = late.sockets;
    baseline.passive_opens_after = late.passive_opens_after;
    let mut witness = Witness::default();
    assert_eq!(witness.surplus(&baseline), None);
    truth.complete(second);
    assert_eq!(surplus(&mut witness, &truth, Depth::Listeners), None);
    truth.sees = false;
    // One unseen connection is hidden by the slack of the second handshake, whose SYN is in the count after all.
    truth.connect(port(80), Family::V4, at(0));
    assert_eq!(surplus(&mut witness, &truth, Depth::Listeners), None);
    truth.connect(port(80), Family::V4, at(0));
    assert_eq!(surplus(&mut witness, &truth, Depth::Listeners), Some(1));
}

#[test]
fn s3_cookies_from_before_the_baseline_raise_no_false_alarm() {
    let mut world = World::at_rest(settings());
    for _ in 0..2500 {
        world.truth.send_cookie(port(80), Family::V4, world.now);
    }
    world.run_to(100);
    world.hook();
    world.run_to(500);
    for _ in 0..2500 {
        world.truth.take_cookie();
    }
    let answered = world.run_out();
    assert_eq!(answered.reason(), Reason::Quiet);
}

#[test]
fn s3_cookies_hide_no_handshake_that_was_completed_without_one() {
    let mut truth = Truth::new(at(0));
    let mut witness = Witness::default();
    for _ in 0..100 {
        truth.send_cookie(port(80), Family::V4, at(0));
    }
    assert_eq!(surplus(&mut witness, &truth, Depth::Connections), None);
    for _ in 0..100 {
        truth.take_cookie();
    }
    truth.sees = false;
    truth.connect(port(80), Family::V4, at(0));
    assert_eq!(surplus(&mut witness, &truth, Depth::Listeners), Some(1));
}

#[test]
fn s3_the_comparison_starts_again_with_each_drain() {
    let mut world = World::at_rest(settings());
    world.hook();
    for _ in 0..50 {
        world.syn(80); // never completed: slack
    }
    world.run_out();
    world.hook();
    world.truth.sees = false;
    for _ in 0..3 {
        world.connect(80);
    }
    world.run_out();
    assert!(world.journal().contains(&Transition::SensorBlind(3)));
    assert_eq!(world.reasons(), [Reason::Quiet, Reason::Unverified]);
}

#[test]
fn s3_blindness_is_of_the_drain_that_showed_it() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.truth.sees = false;
    world.connect(80);
    world.run_out();
    world.truth.sees = true;
    world.hook();
    world.run_out();
    assert_eq!(world.reasons(), [Reason::Unverified, Reason::Quiet]);
}

#[test]
fn s3_no_comparison_reaches_across_a_gap_in_the_sensor() {
    let mut truth = Truth::new(at(0));
    let mut witness = Witness::default();
    assert_eq!(surplus(&mut witness, &truth, Depth::Connections), None);
    truth.break_sensor("gone");
    truth.connect(port(80), Family::V4, at(0));
    assert_eq!(surplus(&mut witness, &truth, Depth::Connections), None);
    truth.mend_sensor(at(1));
    assert_eq!(surplus(&mut witness, &truth, Depth::Listeners), None, "no baseline without the handshakes");
    truth.sees = false;
    truth.connect(port(80), Family::V4, at(1));
    assert_eq!(surplus(&mut witness, &truth, Depth::Connections), None, "the new baseline");
    truth.connect(port(80), Family::V4, at(1) + ms(1));
    assert_eq!(surplus(&mut witness, &truth, Depth::Listeners), Some(1));
}

#[test]
fn s3_a_reading_without_counters_is_no_witness_and_no_baseline() {
    let mut truth = Truth::new(at(0));
    let mut witness = Witness::default();
    truth.counters_broken = Some("no /proc".to_owned());
    assert_eq!(surplus(&mut witness, &truth, Depth::Connections), None);
    truth.counters_broken = None;
    assert_eq!(surplus(&mut witness, &truth, Depth::Connections), None);
    truth.sees = false;
    truth.connect(port(80), Family::V4, at(0));
    truth.counters_broken = Some("no /proc".to_owned());
    assert_eq!(surplus(&mut witness, &truth, Depth::Connections), None);
    truth.counters_broken = None;
    assert_eq!(surplus(&mut witness, &truth, Depth::Listeners), Some(1), "the baseline still stands");
}
