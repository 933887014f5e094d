//! Asking for the kernel's evidence.

use super::{
    truth::port,
    world::{World, at, settings},
};
use crate::core::{
    drain::Core,
    event::{Action, Depth, Event},
};

fn asked(core: &mut Core) -> Vec<Action> {
    std::iter::from_fn(|| core.poll()).collect()
}

#[test]
fn a_reading_is_asked_for_once_and_again_where_it_is_to_be_deeper() {
    let mut core = World::at_rest(settings()).core;
    for (depth, expected) in [
        (Depth::Handshakes, vec![Action::Read(Depth::Handshakes)]),
        (Depth::Handshakes, vec![]),
        (Depth::Listeners, vec![]),
        (Depth::Connections, vec![Action::Read(Depth::Connections)]),
    ] {
        core.read(depth, at(1));
        assert_eq!(asked(&mut core), expected, "{depth:?}");
    }
}

#[test]
fn a_new_listener_is_read_again_in_a_drain_alone() {
    let mut world = World::at_rest(settings());
    world.truth.listeners.insert(port(8080), 0);
    let evidence = |world: &World| Event::Evidence(Box::new(world.truth.evidence(Depth::Listeners, world.now)));
    let at_rest = evidence(&world);
    world.core.handle(at_rest, world.now);
    assert_eq!(asked(&mut world.core), [Action::Watch(port(8080))]);

    world.hook();
    world.run_to(100);
    let nothing_new = evidence(&world);
    world.core.handle(nothing_new, world.now);
    assert_eq!(asked(&mut world.core), []);
    world.truth.listeners.insert(port(8081), 0);
    let one_more = evidence(&world);
    world.core.handle(one_more, world.now);
    assert_eq!(asked(&mut world.core), [Action::Watch(port(8081)), Action::Read(Depth::Listeners)]);
}
