//! E2: quiet, on every watched listener, over every family.

use super::{
    truth::{ms, port},
    world::{World, at, settings},
};
use crate::core::{
    class::Class,
    event::{Action, ByFamily, CallerId, Depth, Event},
    listener::Family,
    settings::{Settings, Watch},
    verdict::{Condition, Reason},
};

#[test]
fn e2_the_answer_comes_a_quiet_period_after_the_last_attempt() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500).connect(80);
    world.run_to(1300).connect(443);
    world.run_to(3299);
    assert!(world.answers.is_empty());
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(3300), Reason::Quiet));
    assert_eq!(answered.verdict.duration_ms, 3300);
    let counts = &answered.verdict.listeners[1].families[0];
    assert_eq!((counts.last_attempt_ago_ms, counts.quiet), (Some(2000), true));
}

#[test]
fn e2_the_answer_is_exact_to_the_nanosecond_at_any_rate() {
    for every in [1, 7, 100, 640, 1999] {
        let mut world = World::at_rest(settings());
        world.hook();
        world.traffic(every, 10_000);
        let last = world.truth.came.last().unwrap().at;
        assert_eq!(world.run_out().at, last + ms(2000), "one every {every} ms");
    }
}

#[test]
fn e2_without_an_attempt_quiet_counts_from_the_hooks_call() {
    let mut world = World::at_rest(settings());
    world.connect(80).run_to(1500);
    world.hook();
    assert_eq!(world.run_out().at, at(3500));
}

#[test]
fn e2_every_listener_and_family_counts() {
    for number in [80, 443] {
        for family in Family::ALL {
            for opaque in [false, true] {
                let mut world = World::at_rest(settings());
                world.hook();
                world.run_to(1900);
                if opaque {
                    world.truth.opaque(Some(port(number)), family, world.now);
                } else {
                    world.truth.syn(port(number), family, world.now);
                }
                let answered = world.run_out();
                assert_eq!(answered.at, at(3900), "{number} {family} opaque: {opaque}");
            }
        }
    }
}

#[test]
fn e2_some_classes_count_and_others_do_not() {
    let counting = [Class::New, Class::Retransmit, Class::Refused, Class::Join, Class::Opaque];
    for class in Class::ALL {
        let mut world = World::at_rest(settings());
        world.hook();
        world.run_to(1900);
        world.truth.syn_of(class, port(80), Family::V4, world.now);
        let answered = world.run_out();
        let counts = counting.contains(&class);
        assert_eq!(answered.at, at(if counts { 3900 } else { 2000 }), "{class:?}");
        let told = &answered.verdict.listeners[0].families[0];
        for of in Class::ALL.into_iter().filter(|of| *of != Class::Probe) {
            assert_eq!(told.count(of), Some(u64::from(of == class)), "{of:?} after one {class:?}");
        }
        assert_eq!(told.last_attempt_ago_ms.is_some(), counts, "{class:?}");
    }
}

#[test]
fn e2_an_attempt_on_another_port_does_not_count() {
    let mut world = World::at_rest(Settings { watch: Watch::Ports(vec![port(80)]), ..settings() });
    world.hook();
    world.run_to(1900).connect(443);
    assert_eq!(world.run_out().at, at(2000));
}

#[test]
fn e2_what_has_no_port_counts_for_every_listener_of_its_family() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(1000);
    world.truth.opaque(None, Family::V6, world.now);
    let answered = world.run_out();
    assert_eq!(answered.at, at(3000));
    for listener in &answered.verdict.listeners {
        let [v4, v6] = &listener.families[..] else { panic!("two families") };
        assert_eq!((v4.opaque, v6.opaque), (Some(0), Some(1)));
        assert_eq!((v4.last_attempt_ago_ms, v6.last_attempt_ago_ms), (None, Some(2000)));
    }
}

#[test]
fn e2_a_family_that_the_pod_has_no_address_in_is_not_asked() {
    let mut world = World::at_rest(settings());
    world.truth.families.v6 = false;
    world.run_to(1);
    world.hook();
    world.run_to(1900);
    world.truth.syn(port(80), Family::V6, world.now);
    world.truth.opaque(None, Family::V6, world.now);
    let answered = world.run_out();
    assert_eq!(answered.at, at(2001));
    assert_eq!(answered.verdict.listeners[0].families.len(), 1);
}

#[test]
fn e2_with_no_address_at_all_both_families_are_asked() {
    let mut world = World::at_rest(settings());
    world.truth.families = ByFamily::default();
    world.run_to(1);
    world.hook();
    world.run_to(1900);
    world.truth.syn(port(80), Family::V6, world.now);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(3900), Reason::Unverified));
    assert_eq!(answered.unseen(), ["address"]);
}

#[test]
fn e2_an_address_that_goes_away_in_the_drain_leaves_its_family_asked() {
    for family in Family::ALL {
        let mut world = World::at_rest(settings());
        world.hook();
        world.run_to(1900);
        world.truth.syn(port(80), family, world.now);
        *world.truth.families.get_mut(family) = false;
        assert_eq!(world.run_out().at, at(3900), "{family:?}");
    }
}

#[test]
fn e2_quiet_counts_from_when_the_sensor_was_proven() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(700);
    world.truth.mend_sensor(world.now); // put back between two readings
    assert_eq!(world.run_out().at, at(2700));
}

#[test]
fn e2_quiet_counts_from_when_the_port_is_watched() {
    let mut world = World::at_rest(settings());
    world.run_to(5000);
    world.truth.listeners.insert(port(8080), 0);
    world.hook(); // the reading that this asks for finds it
    assert_eq!(world.run_out().at, at(7000));
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(1500);
    world.truth.listeners.insert(port(8080), 0); // found at 2000
    assert_eq!(world.run_out().at, at(4000));
}

#[test]
fn e2_evidence_from_before_the_hooks_call_decides_nothing() {
    // Here readings take a while, and the driver hands in one that it began before the call.
    let mut world = World::at_rest(Settings { quiet_period: ms(1), ..settings() });
    world.run_to(1000);
    let before = world.truth.evidence(Depth::Handshakes, world.now);
    world.now = at(1005);
    let called = Event::HookCalled { caller: CallerId(9), wall_time: String::new() };
    world.core.handle(called, world.now);
    assert!(matches!(world.core.poll(), Some(Action::Read(Depth::Handshakes))));
    world.now = at(1010);
    world.core.handle(Event::Evidence(Box::new(before)), world.now);
    assert_eq!(world.core.poll(), None);
    assert_eq!(world.core.poll_timeout(), Some(at(21_005)), "it still waits for its own reading");
    let after = world.truth.evidence(Depth::Handshakes, at(1007));
    world.core.handle(Event::Evidence(Box::new(after)), world.now);
    assert!(matches!(world.core.poll(), Some(Action::Answer(CallerId(9), _))));
}

#[test]
fn e2_a_shallow_look_does_not_stand_for_the_reading_that_was_asked_for() {
    let mut world = World::at_rest(settings());
    world.core.handle(Event::HookCalled { caller: CallerId(9), wall_time: String::new() }, world.now);
    assert!(matches!(world.core.poll(), Some(Action::Read(Depth::Handshakes))));
    world.now = at(10);
    let look = world.truth.evidence(Depth::Listeners, world.now);
    world.core.handle(Event::Evidence(Box::new(look)), world.now);
    assert_eq!((world.core.poll(), world.core.poll_timeout()), (None, Some(at(20_000))), "it still waits for it");
    let reading = world.truth.evidence(Depth::Handshakes, world.now);
    world.core.handle(Event::Evidence(Box::new(reading)), world.now);
    assert_eq!((world.core.poll(), world.core.poll_timeout()), (None, Some(at(2000))));
}

#[test]
fn e2_an_older_reading_does_not_replace_a_newer_one() {
    let mut world = World::at_rest(settings());
    let older = world.truth.evidence(Depth::Handshakes, world.now);
    world.hook();
    world.run_to(1000).connect(80);
    world.look();
    world.handle(Event::Evidence(Box::new(older)));
    assert_eq!(world.core.evidence().unwrap().taken_at, at(1000));
    assert_eq!(world.core.listeners()[0].families[0].new, Some(1));
}

#[test]
fn e2_a_port_that_cannot_be_counted_is_never_quiet() {
    let mut world = World::at_rest(settings());
    world.truth.uncountable.insert(port(8080));
    world.truth.listeners.insert(port(8080), 0);
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(20_000), Reason::Bound));
    assert_eq!(answered.verdict.holding, [Condition::Quiet]);
    let uncounted = &answered.verdict.listeners[2].families[0];
    assert_eq!((uncounted.new, uncounted.opaque, uncounted.quiet), (None, None, false));
}

#[test]
fn e2_a_quiet_period_as_long_as_the_bound_ends_at_the_bound() {
    let mut world = World::at_rest(Settings { quiet_period: ms(20_000), ..settings() });
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(20_000), Reason::Bound));
    assert_eq!(answered.verdict.holding, [Condition::Quiet]);
}
