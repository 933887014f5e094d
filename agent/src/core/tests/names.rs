//! Names that other people's tools depend on, where they are not made by serde.

use std::time::Duration;

use super::{
    truth::port,
    world::{World, settings},
};
use crate::core::{
    class::Class,
    clock::Monotonic,
    listener::{Port, Protocol},
    pace::Pace,
    verdict::Strategy,
};

#[test]
fn classes_have_the_names_of_verdicts_and_metrics() {
    let names = ["new", "retransmit", "refused", "probe", "ignored", "join", "stray", "opaque"];
    assert_eq!(Class::ALL.map(Class::name), names);
}

#[test]
fn a_port_is_written_as_its_number() {
    assert_eq!(format!("{:>5}", port(443)), "  443");
}

#[test]
fn what_is_no_port_is_told_what_one_looks_like() {
    for wrong in ["true", "0", "70000"] {
        let refused = serde_json::from_str::<Port>(wrong).map_err(|error| error.to_string());
        assert!(refused.as_ref().is_err_and(|why| why.contains("443")), "{wrong}: {refused:?}");
    }
}

#[test]
fn a_datagram_is_not_known_to_be_sent_again_or_stray_or_a_probe() {
    let of_datagrams = [Class::New, Class::Refused, Class::Opaque, Class::Ignored];
    for class in Class::ALL {
        assert!(Protocol::Tcp.tells(class));
        assert_eq!(Protocol::Udp.tells(class), of_datagrams.contains(&class), "{class:?}");
    }
}

#[test]
fn each_sensor_tells_the_classes_that_its_place_in_the_kernel_shows() {
    let tells = |strategy: Strategy| Class::ALL.into_iter().filter(|class| strategy.tells(*class)).collect::<Vec<_>>();
    let but = |not: &[Class]| Class::ALL.into_iter().filter(|class| !not.contains(class)).collect::<Vec<_>>();
    assert_eq!([Strategy::Tcx, Strategy::Clsact].map(tells), [but(&[]), but(&[])]);
    assert_eq!(tells(Strategy::Packet), but(&[Class::Stray]));
    assert_eq!(tells(Strategy::Cgroup), but(&[Class::Refused, Class::Stray]));
    assert_eq!(tells(Strategy::Counters), []);
}

#[test]
fn a_pace_keeps_the_period_that_it_was_made_with() {
    assert_eq!(Pace::new(Duration::from_secs(7)).period(), Duration::from_secs(7));
}

#[test]
fn an_instant_is_the_nanoseconds_that_it_was_made_of() {
    assert_eq!(Monotonic::from_nanos(1_000_000_007).as_nanos(), 1_000_000_007);
}

#[test]
fn a_view_knows_whether_a_drain_is_under_way() {
    let mut world = World::at_rest(settings());
    assert!(!world.core.is_draining());
    world.hook();
    assert!(world.core.is_draining());
    world.run_out();
    assert!(!world.core.is_draining());
}

#[test]
fn a_strategy_has_the_name_that_serde_gives_it() {
    for strategy in [Strategy::Tcx, Strategy::Counters] {
        assert_eq!(serde_json::to_value(strategy).unwrap(), strategy.name());
    }
}
