//! E4: established connections.

use super::{
    truth::port,
    world::{World, at, settings},
};
use crate::core::{
    event::{Depth, Event},
    settings::{Settings, Watch},
    verdict::{Condition, Reason},
};

fn few() -> Settings {
    Settings { exit_at_connections: Some(3), ..settings() }
}

#[test]
fn e4_more_connections_than_wanted_hold() {
    let mut world = World::at_rest(few());
    world.truth.established = [(port(80), 2), (port(443), 2)].into();
    world.hook();
    world.run_to(6000);
    assert_eq!(world.holding(), [Condition::Connections]);
    world.truth.established.insert(port(80), 1);
    let answered = world.run_out();
    assert!((at(6000)..=at(6250)).contains(&answered.at), "{}", answered.at_ms());
    assert_eq!(answered.reason(), Reason::Quiet);
}

#[test]
fn e4_does_not_hold_where_it_is_not_set_or_not_watched() {
    for settings in [settings(), Settings { watch: Watch::Ports(vec![port(443)]), ..few() }] {
        let mut world = World::at_rest(settings);
        world.truth.established.insert(port(80), 1000);
        world.hook();
        assert_eq!(world.run_out().at, at(2000));
    }
}

#[test]
fn e4_connections_of_a_listener_that_has_closed_still_count() {
    let mut world = World::at_rest(few());
    world.truth.established.insert(port(80), 4);
    world.hook();
    world.run_to(1000);
    world.truth.listeners.remove(&port(80));
    let answered = world.run_out();
    assert_eq!((answered.reason(), answered.verdict.holding.clone()), (Reason::Bound, vec![Condition::Connections]));
}

#[test]
fn e4_a_status_that_reads_no_connections_still_shows_that_they_hold() {
    let mut world = World::at_rest(few());
    world.truth.established.insert(port(80), 4);
    world.hook();
    world.run_to(5000);
    // Before the reading of the connections that this calls for.
    let look = world.truth.evidence(Depth::Listeners, world.now);
    world.core.handle(Event::Evidence(Box::new(look)), world.now);
    assert_eq!(world.core.drain_view(world.now).unwrap().holding, [Condition::Connections]);
}
