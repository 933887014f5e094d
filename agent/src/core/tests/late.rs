//! S7: what comes after a drain's end.

use super::{
    truth::{ms, port},
    world::{World, at, settings},
};
use crate::core::{
    class::Class,
    event::{Event, SensorState},
    listener::Family,
    settings::Settings,
    verdict::{Late, Strategy, Verdict},
};

fn completed(world: &World) -> Verdict {
    world.core.completed_verdict().expect("a drain has ended")
}

fn late(world: &World) -> Late {
    completed(world).late.expect("what came after the end")
}

#[test]
fn s7_what_comes_after_the_end_is_told_by_what_became_of_it() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(1000).connect(80);
    let answered = world.run_out().clone();
    assert_eq!((answered.at, answered.verdict.late.clone()), (at(3000), None), "the answer cannot know");
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(1000).connect(80);
    world.run_to(3000);
    assert_eq!(late(&world), Late::default());
    for (class, family, times) in [
        (Class::New, Family::V4, 7),
        (Class::Join, Family::V6, 1),
        (Class::Retransmit, Family::V6, 2),
        (Class::Refused, Family::V4, 5),
        (Class::Opaque, Family::V4, 3),
        (Class::Stray, Family::V4, 50),
        (Class::Ignored, Family::V6, 60),
    ] {
        for _ in 0..times {
            world.truth.syn_of(class, port(443), family, world.now);
        }
    }
    world.run_to(3400);
    world.truth.opaque(None, Family::V6, world.now);
    world.run_to(3500);
    world.look();
    let expected = Late { taken: 10, refused: 5, opaque: 4, last_after_ms: Some(400), observed_for_ms: 0 };
    assert_eq!(late(&world), expected);
    let told: Vec<_> = completed(&world)
        .listeners
        .iter()
        .flat_map(|listener| listener.families.iter().map(|counts| (listener.port, counts.family, counts.late)))
        .collect();
    let [http, https] = [80, 443].map(port);
    let expected = [
        (http, Family::V4, Some(0)),
        (http, Family::V6, Some(1)), // it may have been for any listener
        (https, Family::V4, Some(15)),
        (https, Family::V6, Some(4)),
    ];
    assert_eq!(told, expected);
    // What the verdict itself tells of stays as it was answered.
    let counts = &completed(&world).listeners[0].families[0];
    assert_eq!((counts.new, counts.last_attempt_ago_ms), (Some(1), Some(2000)));
}

#[test]
fn s7_the_last_late_syn_is_the_last_that_came_after_the_end() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    world.truth.opaque(None, Family::V6, world.now);
    world.connect(80);
    world.run_to(4000);
    world.look();
    assert_eq!(late(&world).last_after_ms, None, "what came before");
    world.truth.syn_of(Class::Refused, port(80), Family::V4, world.now);
    world.look();
    assert_eq!(late(&world).last_after_ms, Some(1500));
}

#[test]
fn s7_it_is_told_for_how_long_it_was_watched_since_the_last_listener_closed() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(2500);
    world.truth.listeners.remove(&port(80));
    world.run_to(4000);
    world.look();
    assert_eq!(late(&world).observed_for_ms, 0, "443 is open");
    world.truth.listeners.clear();
    world.look();
    world.run_to(4900);
    world.look();
    assert_eq!(late(&world).observed_for_ms, 900);
    world.truth.listeners.insert(port(80), 0);
    world.look();
    assert_eq!(late(&world).observed_for_ms, 0, "open again");
    world.truth.listeners.clear();
    world.look();
    world.run_to(6000);
    world.truth.mend_sensor(world.now);
    world.run_to(6300);
    world.look();
    assert_eq!(late(&world).observed_for_ms, 300, "known to see everything since then");
    world.truth.break_sensor("gone");
    world.look();
    assert_eq!(late(&world).observed_for_ms, 0, "nothing is known");
}

#[test]
fn s7_a_sensor_that_sees_no_closed_port_has_not_watched_one() {
    for (strategy, watched) in [(Strategy::Tcx, 900), (Strategy::Packet, 900), (Strategy::Cgroup, 0)] {
        let mut world = World::at_rest(settings());
        world.truth.sensor = SensorState::Proven { strategy, since: world.now };
        world.hook();
        world.run_to(4000);
        world.truth.listeners.clear();
        world.look();
        world.run_to(4900);
        world.look();
        assert_eq!(late(&world).observed_for_ms, watched, "{strategy:?}");
    }
}

#[test]
fn s7_the_next_drain_begins_anew() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(2000);
    world.truth.syn_of(Class::Refused, port(80), Family::V4, world.now);
    world.run_to(2500);
    world.hook();
    assert_eq!(late(&world).refused, 1);
    world.run_to(5000);
    assert_eq!(world.answers.len(), 2);
    assert_eq!(late(&world), Late::default());
}

#[test]
fn s7_it_lingers_to_see_what_comes_after_a_drain() {
    let lingering = || Settings { linger: ms(3000), ..settings() };
    let mut world = World::at_rest(lingering());
    world.hook();
    world.run_to(3000);
    world.handle(Event::Terminate);
    world.run_to(4000);
    world.truth.listeners.clear();
    world.run_to(6900);
    assert_eq!(world.exited, None);
    world.truth.syn_of(Class::Refused, port(80), Family::V4, world.now);
    world.run_to(8000);
    let exited = world.exited.unwrap();
    assert!(exited >= at(7000) && exited <= at(7100), "{exited:?}");
    assert_eq!(late(&world).refused, 1);
    assert!((3000..=3050).contains(&late(&world).observed_for_ms), "{:?}", late(&world));

    // Not without a drain, and not past the bound and the reserve.
    let mut world = World::at_rest(lingering());
    world.truth.listeners.clear();
    world.handle(Event::Terminate);
    assert_eq!(world.exited, Some(at(0)));
    let mut world = World::at_rest(Settings { linger: ms(60_000), stop_reserve: ms(1000), ..settings() });
    world.hook();
    world.run_to(3000);
    world.truth.listeners.clear();
    world.handle(Event::Terminate);
    world.run_to(60_000);
    assert_eq!(world.exited, Some(at(21_000)));
}
