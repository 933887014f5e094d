//! E2a: a SYN that was dropped unanswered comes back.

use super::{
    truth::{Truth, ms, port},
    world::{START, World, at, settings},
};
use crate::core::{
    journal::Transition,
    listener::Family,
    settings::{Settings, Watch},
    verdict::{Condition, Reason},
};

fn drop_syn(world: &mut World, number: u16) {
    world.truth.drop_syn(port(number), Family::V4, world.now);
}

#[test]
fn e2a_a_drop_in_the_drain_is_awaited_for_retry_wait() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    drop_syn(&mut world, 80);
    world.run_to(3000);
    assert_eq!(world.holding(), [Condition::Retry]);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(8500), Reason::Quiet));
    assert_eq!((answered.verdict.held_by.retry_ms, answered.verdict.held_by.quiet_ms), (8500, 2500));
    assert!(world.journal().contains(&Transition::SynsDropped(1)));
}

#[test]
fn e2a_the_wait_counts_from_the_last_attempt_since_the_reading_before() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    drop_syn(&mut world, 80);
    world.run_to(900).connect(80); // may have been the dropped one
    assert_eq!(world.run_out().at, at(8900));
}

#[test]
fn e2a_a_try_that_is_served_leaves_the_wait_as_it_is_and_one_that_is_dropped_renews_it() {
    for (dropped_again, end) in [(false, 8500), (true, 9500)] {
        let mut world = World::at_rest(settings());
        world.hook();
        world.run_to(500);
        drop_syn(&mut world, 80);
        world.run_to(1500);
        world.look(); // or the second try could have been the dropped one
        if dropped_again {
            drop_syn(&mut world, 80);
        } else {
            world.connect(80);
        }
        assert_eq!(world.run_out().at, at(end));
    }
}

#[test]
fn e2a_a_drop_at_rest_is_awaited_up_to_retry_wait_from_it() {
    for (called, end) in [(1, 8000), (3000, 8000), (6500, 8500), (7999, 9999), (8000, 10_000), (9000, 11_000)] {
        let mut world = World::at_rest(settings());
        drop_syn(&mut world, 80);
        world.run_to(called);
        world.hook();
        assert_eq!(world.run_out().at, at(end), "called at {called}");
    }
}

#[test]
fn e2a_drops_from_before_the_first_reading_may_have_been_just_now() {
    let mut truth = Truth::new(START);
    truth.counters.dropped = 7;
    let mut world = World::with(settings(), truth);
    world.run_to(1000);
    world.hook();
    assert_eq!(world.run_out().at, at(8000));
}

#[test]
fn e2a_without_retry_wait_nothing_is_awaited() {
    let mut world = World::at_rest(Settings { retry_wait: ms(0), ..settings() });
    drop_syn(&mut world, 80);
    world.hook();
    world.run_to(500);
    drop_syn(&mut world, 80);
    assert_eq!(world.run_out().at, at(2500));
}

#[test]
fn e2a_a_drop_on_a_port_that_is_not_watched_holds_nothing() {
    let mut world = World::at_rest(Settings { watch: Watch::Ports(vec![port(80)]), ..settings() });
    world.hook();
    world.run_to(500);
    drop_syn(&mut world, 443);
    assert_eq!(world.run_out().at, at(2000));
}

#[test]
fn e2a_where_not_every_attempt_was_seen_the_drop_may_have_been_just_now() {
    // The sensor was put back between two readings.
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    drop_syn(&mut world, 80);
    world.run_to(900);
    world.truth.mend_sensor(world.now);
    world.run_to(1200);
    world.look();
    assert_eq!(world.run_out().at, at(9200));
    // The port was not counted yet.
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(1000);
    world.truth.listeners.insert(port(8080), 0);
    world.run_to(1500);
    drop_syn(&mut world, 8080);
    assert_eq!(world.run_out().at, at(10_000), "found at 2000");
    // Only the counters are there.
    let mut world = World::at_rest(settings());
    world.truth.counters_only();
    world.hook();
    world.run_to(1000);
    drop_syn(&mut world, 80);
    assert_eq!(world.run_out().at, at(10_000), "seen at 2000");
}

#[test]
fn e2a_a_blind_sensor_does_not_date_a_drop() {
    let mut world = World::at_rest(settings());
    world.run_to(1000);
    world.hook();
    world.truth.sees = false;
    world.run_to(1500);
    world.connect(80);
    drop_syn(&mut world, 80);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(11_000), Reason::Unverified), "seen at 3000");
}

#[test]
fn e2a_counters_that_cannot_be_read_hold_to_the_bound() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    world.truth.counters_broken = Some("no /proc".to_owned());
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(20_000), Reason::Bound));
    assert_eq!(answered.verdict.holding, [Condition::Retry, Condition::Handshakes]);
    assert_eq!(answered.unseen(), ["counters"]);
    assert!(world.journal().contains(&Transition::CountersUnreadable("no /proc".to_owned())));
}

#[test]
fn e2a_drops_while_the_counters_could_not_be_read_are_found_afterwards() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    world.truth.counters_broken = Some("no /proc".to_owned());
    world.run_to(2500);
    drop_syn(&mut world, 80);
    world.run_to(3000);
    world.truth.counters_broken = None;
    assert_eq!(world.run_out().at, at(10_500));
}
