//! A rolling update, while unrelated slices are written all the time: drains end by evidence, and agents at rest leave the
//! API server alone. `cargo xtask prove rolling-update` shows it with 100 pods.

use lastsyn_tests::{kubernetes::Mode, prove::rolling_update::Plan};

#[test]
fn drains_of_a_rolling_update_end_by_evidence() {
    let plan = Plan { mode: Mode::Nftables, pods: 12, surge: 3, unrelated_writes: 2, per_second: 20 };
    let round = plan.run().unwrap();
    let line = round.to_json(&plan);
    round.check(&plan).unwrap();
    assert_eq!(round.summary().lost(), 0, "{line}");
    assert_eq!(round.bytes_at_rest(), 0, "{line}");
    // 95 of a hundred: of so few, all.
    assert_eq!(round.by_evidence(), 12, "{line}");
}
