//! The page of a drain with ten listeners over both families is small, and a browser shows it. `cargo xtask prove report-page` does the
//! same for ten minutes, and times it.

use std::time::Duration;

use lastsyn_tests::prove::report_page::show;

#[test]
fn a_page_of_ten_listeners_is_small_and_a_browser_shows_it() {
    let shown = show(Duration::from_secs(6), 1).unwrap();
    shown.check().unwrap();
    assert!(shown.attempts > 100 && shown.size > 20_000, "there is something on it: {shown:?}");
}
