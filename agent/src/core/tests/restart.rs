//! S2: an agent that restarts in a drain knows nothing of it.

use super::world::{START, World, at, settings};
use crate::core::{
    drain::Core,
    event::{CallerId, Event},
    verdict::Reason,
};

#[test]
fn s2_a_restart_in_the_drain_starts_the_quiet_period_again() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(1900);
    // A new process: its programs have counted nothing, and are proven from here on.
    world.core = Core::new(settings(), world.now);
    world.truth.attempts.clear();
    world.truth.anywhere = 0;
    world.truth.mend_sensor(world.now);
    world.handle(Event::Clock);
    world.run_to(2000);
    world.hook(); // the caller asks again
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(4000), Reason::Quiet));
}

#[test]
fn s2_a_hook_that_is_called_before_the_first_reading_waits_for_it() {
    let mut world = World::at_rest(settings());
    world.core = Core::new(settings(), START);
    world.core.handle(Event::Clock, START);
    world.core.handle(Event::HookCalled { caller: CallerId(9), wall_time: String::new() }, at(1));
    world.now = at(300); // the reading takes its time
    world.truth.mend_sensor(world.now);
    world.truth.attempts.clear();
    world.handle(Event::Clock);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.caller), (at(2300), CallerId(9)));
    assert_eq!(answered.reason(), Reason::Unverified, "between the call and the proof nothing is known");
}
