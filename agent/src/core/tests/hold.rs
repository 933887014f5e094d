//! What a reading that does not tell leaves of the one before it.

use std::time::Duration;

use super::world::at;
use crate::core::{
    drain::pace,
    hold::Hold::{self, AtMost, Awaited, Met, Open, Unread, Until},
};

#[test]
fn a_reading_that_does_not_tell_leaves_what_was_known() {
    let or = |before: Hold| Unread.or(before, at(100));
    assert_eq!(or(Until(at(101))), Until(at(101)));
    assert_eq!(or(AtMost(at(101))), AtMost(at(101)));
    for known in [Met, Open] {
        assert_eq!(or(known), known);
    }
    // Until then, and no longer.
    for passed in [Until(at(100)), AtMost(at(100)), Until(at(99)), Awaited] {
        assert_eq!(or(passed), Unread, "{passed:?}");
    }
}

#[test]
fn a_reading_that_tells_is_what_counts() {
    assert_eq!(Met.or(Until(at(200)), at(100)), Met);
    assert_eq!(Open.or(Met, at(100)), Open);
}

#[test]
fn the_pace_of_looking_again_follows_the_time_that_it_has_taken() {
    let pace = |millis| pace(Duration::from_millis(millis)).as_millis();
    assert_eq!(pace(800), 100);
    assert_eq!(pace(400), 50);
    assert!(pace(0) > 0 && pace(1_000_000) == pace(2_000_000));
}
