//! The page of a drain with ten listeners over both families is small, and a browser shows it at once. `cargo xtask prove report-page` does
//! the same for ten minutes.

use std::time::Duration;

use lastsyn_tests::prove::report_page::show;

#[test]
fn a_page_of_ten_listeners_is_small_and_shown_within_a_second() {
    let shown = show(Duration::from_secs(6)).unwrap();
    shown.check().unwrap();
    assert!(shown.attempts > 100 && shown.size > 20_000, "there is something on it: {shown:?}");
}
