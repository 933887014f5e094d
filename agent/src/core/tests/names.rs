//! Names that other people's tools depend on, where they are not made by serde.

use crate::core::{class::Class, clock::Monotonic};

#[test]
fn classes_have_the_names_of_verdicts_and_metrics() {
    let names = ["new", "retransmit", "refused", "probe", "ignored", "join", "stray", "opaque"];
    assert_eq!(Class::ALL.map(Class::name), names);
}

#[test]
fn an_instant_is_the_nanoseconds_that_it_was_made_of() {
    assert_eq!(Monotonic::from_nanos(1_000_000_007).as_nanos(), 1_000_000_007);
}
