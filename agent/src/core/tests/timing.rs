//! `poll_timeout`: what it says is true, and it never makes the agent spin. The world itself checks, at every step, that
//! nothing is due again once it has been done.

use super::{
    truth::{ms, port},
    world::{World, at, settings},
};
use crate::core::{
    event::{ByFamily, Depth, Event},
    settings::Settings,
};

/// A name, and what makes the world such.
type Case = (&'static str, fn(&mut World));

const CASES: [Case; 9] = [
    ("nothing", |_| {}),
    ("sockets unreadable", |world| world.truth.sockets_broken = Some("no sock_diag".to_owned())),
    ("counters unreadable", |world| world.truth.counters_broken = Some("no /proc".to_owned())),
    ("sensor unproven", |world| world.truth.break_sensor("gone")),
    ("counters only", |world| world.truth.counters_only()),
    ("a port that cannot be counted", |world| {
        world.truth.uncountable.insert(port(8080));
        world.truth.listeners.insert(port(8080), 0);
    }),
    ("connections that stay", |world| {
        world.truth.established.insert(port(80), 1);
    }),
    ("an accept queue that stays", |world| {
        world.truth.listeners.insert(port(80), 1);
    }),
    ("no address", |world| world.truth.families = ByFamily::default()),
];

#[test]
fn a_drain_reads_no_oftener_than_it_has_to() {
    for (name, make) in CASES {
        let mut world = World::at_rest(Settings { exit_at_connections: Some(0), ..settings() });
        make(&mut world);
        let before = world.readings.len();
        world.hook();
        world.run_to(20_000);
        assert_eq!(world.answers.len(), 1, "{name}");
        let readings = world.readings.len() - before;
        assert!(readings < 130, "{name}: {readings} readings in 20 s");
    }
}

#[test]
fn attempts_that_never_stop_cost_a_reading_each_quiet_period() {
    let mut world = World::at_rest(settings());
    let before = world.readings.len();
    world.hook();
    world.traffic(1, 20_000);
    let readings = world.readings.len() - before;
    assert!(readings <= 14, "{readings}");
}

#[test]
fn a_short_quiet_period_reads_the_connections_only_for_the_end() {
    let mut world = World::at_rest(Settings { quiet_period: ms(20), ..settings() });
    world.hook();
    world.traffic(5, 5000);
    world.run_out();
    let deep = world.readings.iter().filter(|(_, depth)| *depth == Depth::Handshakes).count();
    assert_eq!(deep, 2, "at the call and at the end");
    assert!(world.readings.len() > 200);
}

#[test]
fn readings_that_take_long_leave_time_between_them() {
    let mut world = World::at_rest(settings());
    world.truth.listeners.insert(port(80), 1);
    world.reading_takes = ms(500);
    world.hook();
    let before = world.readings.len();
    world.run_to(18_000);
    let times: Vec<_> = world.readings[before..].iter().map(|(time, _)| *time).collect();
    let pauses = times.windows(2).map(|pair| pair[1].since(pair[0]));
    assert!(pauses.skip(3).all(|pause| pause >= ms(750)), "{times:?}");
    assert!(times.len() > 10);
}

#[test]
fn at_rest_a_reading_comes_every_retry_wait() {
    for (name, make) in CASES {
        let mut world = World::at_rest(settings());
        make(&mut world);
        let before = world.readings.len();
        world.run_to(80_000);
        assert_eq!(world.readings.len() - before, 10, "{name}");
    }
}

#[test]
fn an_agent_that_was_asked_to_stop_does_not_spin() {
    let mut world = World::at_rest(settings());
    let before = world.readings.len();
    world.handle(Event::Terminate);
    world.run_to(30_000);
    let readings = world.readings.len() - before;
    assert!(world.exited.is_some() && readings < 800, "{readings} readings in 30 s");
}

#[test]
fn nothing_is_due_before_it_was_said_to_be() {
    for (name, make) in CASES {
        let mut world = World::at_rest(Settings { exit_at_connections: Some(0), ..settings() });
        make(&mut world);
        world.hook();
        while world.answers.is_empty() {
            let due = world.core.poll_timeout().expect("a drain has a bound");
            assert!(due > world.now, "{name}");
            let early = at(0) + due.since(at(0)).saturating_sub(std::time::Duration::from_nanos(1));
            world.core.handle(Event::Clock, early.max(world.now));
            assert_eq!(world.core.poll(), None, "{name}: due before {due:?}");
            assert_eq!(world.core.poll_timeout(), Some(due), "{name}: another time than was said");
            world.run(due);
        }
    }
}

#[test]
fn a_reading_that_a_later_one_overtakes_is_made_again() {
    let mut world = World::at_rest(settings());
    let caller = crate::core::event::CallerId(1);
    world.core.handle(Event::HookCalled { caller, wall_time: String::new() }, world.now);
    while world.core.poll().is_some() {}
    // The reading that was asked for takes its time, and somebody looks at the status meanwhile.
    let deep = world.truth.evidence(Depth::Handshakes, world.now);
    world.run_to(5);
    world.look();
    world.handle(Event::Evidence(Box::new(deep)));
    assert_eq!(world.run_out().at_ms(), 2000);
}
