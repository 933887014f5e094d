//! E3: handshakes that closing the listener would reset.

use super::{
    truth::{ms, port},
    world::{World, at, settings},
};
use crate::core::{
    event::Depth,
    journal::Transition,
    listener::Family,
    settings::{Settings, Watch},
    verdict::{Condition, Reason},
};

#[test]
fn e3_an_accept_queue_holds_until_it_is_taken() {
    let mut world = World::at_rest(settings());
    world.truth.listeners.insert(port(443), 1);
    world.hook();
    world.run_to(7000);
    assert_eq!(world.holding(), [Condition::Handshakes]);
    world.truth.listeners.insert(port(443), 0);
    let answered = world.run_out();
    assert!((at(7000)..=at(7250)).contains(&answered.at), "{}", answered.at_ms());
    assert_eq!(answered.reason(), Reason::Quiet);
    let handshakes = answered.verdict.held_by.handshakes_ms;
    assert!((6750..=7000).contains(&handshakes), "{handshakes}");
}

#[test]
fn e3_a_handshake_holds_for_the_grace_since_it_was_first_seen() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    world.begin(80); // first seen when the handshakes are read, 50 ms before quiet is due at 2500
    world.run_to(5449);
    assert_eq!(world.holding(), [Condition::Handshakes]);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(5450), Reason::Quiet));
}

#[test]
fn e3_a_handshake_that_is_completed_holds_no_longer() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    let handshake = world.begin(80);
    world.run_to(3000);
    assert!(world.answers.is_empty());
    world.truth.complete(handshake);
    let answered = world.run_out();
    assert!((at(3000)..=at(3300)).contains(&answered.at), "{}", answered.at_ms());
}

#[test]
fn e3_a_handshake_that_is_never_completed_is_waited_for_once() {
    let mut world = World::at_rest(settings());
    world.begin(80);
    world.hook(); // first seen
    assert_eq!(world.run_out().at, at(3000));
    world.hook();
    assert_eq!(world.answers.len(), 1);
    world.run_to(200_000);
    assert_eq!(world.answers[1].at, at(102_000), "it is old by then");
}

#[test]
fn e3_a_blind_sensor_does_not_show_that_no_handshake_has_begun() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.truth.sees = false;
    world.run_to(100).connect(80);
    world.look(); // blind
    world.run_to(1000);
    world.begin(80);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(5050), Reason::Unverified), "first seen at 2050");
}

#[test]
fn e3_a_gap_in_the_sensor_does_not_show_that_no_handshake_has_begun() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    world.truth.sees = false;
    world.begin(80);
    world.run_to(600);
    world.truth.mend_sensor(world.now);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(5550), Reason::Unverified), "first seen at 2550");
}

#[test]
fn e3_handshakes_of_other_ports_do_not_hold() {
    let mut world = World::at_rest(Settings { watch: Watch::Ports(vec![port(80)]), ..settings() });
    world.truth.listeners.insert(port(443), 3);
    world.hook();
    world.run_to(1900);
    world.begin(443);
    assert_eq!(world.run_out().at, at(2000));
}

#[test]
fn e3_after_a_cookie_the_grace_passes() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(700);
    world.truth.send_cookie(port(80), Family::V4, world.now);
    world.run_to(3000);
    assert_eq!(world.holding(), [Condition::Handshakes]);
    assert_eq!(world.run_out().at, at(3700));
}

#[test]
fn e3_a_cookie_sent_just_before_the_drain_counts_too() {
    let mut world = World::at_rest(settings());
    world.truth.send_cookie(port(80), Family::V4, world.now);
    world.run_to(100);
    world.hook();
    assert_eq!(world.run_out().at, at(3000));
}

#[test]
fn e3_a_cookie_that_a_blind_sensor_missed_counts_from_the_reading_that_shows_it() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.truth.sees = false;
    for tenth in 1..5 {
        world.run_to(tenth * 100).connect(80);
    }
    world.run_to(2200); // found blind at 2000, where it would have ended
    assert!(world.journal().iter().any(|what| matches!(what, Transition::SensorBlind(_))));
    world.run_to(2500);
    world.truth.send_cookie(port(80), Family::V4, world.now);
    let answered = world.run_out();
    // Read shortly before 4000, when two seconds without a sign of life would have been over.
    assert_eq!((answered.at, answered.reason()), (at(6950), Reason::Unverified));
}

#[test]
fn e3_a_socket_table_that_cannot_be_read_holds_to_the_bound() {
    let mut world = World::at_rest(settings());
    world.truth.sockets_broken = Some("no sock_diag".to_owned());
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(20_000), Reason::Bound));
    assert_eq!(answered.verdict.holding, [Condition::Handshakes]);
    assert_eq!(answered.unseen(), ["sockets"]);
    let told = world.journal();
    let told = told.iter().filter(|what| matches!(what, Transition::SocketsUnreadable(_))).count();
    assert_eq!(told, 1);
}

#[test]
fn e3_a_handshake_of_a_listener_that_appears_in_the_drain_holds() {
    let mut world = World::at_rest(Settings { quiet_period: ms(100), ..settings() });
    world.hook();
    world.run_to(50);
    world.truth.listeners.insert(port(8080), 0);
    world.run_to(150); // found at 100
    world.begin(8080);
    assert_eq!(world.run_out().at, at(3250), "first seen at 250");
}

#[test]
fn e3_the_last_look_needs_no_handshakes_if_no_syn_came_since_they_were_read() {
    let mut world = World::at_rest(settings());
    world.readings.clear();
    world.hook();
    world.run_to(500);
    world.connect(80);
    world.run_to(2500);
    assert_eq!(world.reasons(), [Reason::Quiet]);
    let (shallow, deep) = (Depth::Listeners, Depth::Handshakes);
    assert_eq!(world.readings, [(at(0), deep), (at(2000), shallow), (at(2450), deep), (at(2500), shallow)]);
}

#[test]
fn e3_a_syn_after_the_handshakes_were_read_makes_them_be_read_again() {
    let mut world = World::at_rest(Settings { watch: Watch::Ports(vec![port(80)]), ..settings() });
    world.hook();
    world.run_to(1990);
    world.syn(9); // to a port that is not watched: quiet is still due at 2000
    world.run_to(2000);
    assert_eq!(world.reasons(), [Reason::Quiet]);
    assert_eq!(world.readings.last(), Some(&(at(2000), Depth::Handshakes)));
}
