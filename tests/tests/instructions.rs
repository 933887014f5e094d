//! What the verifier has to follow of each program, exactly: a change of the programs that costs the kernel more shows here,
//! whatever the machine is. `results/verified-instructions.json` has the counts of each kernel version that was tried.

use std::{collections::BTreeMap, fs, path::Path};

use lastsyn_tests::tcx::{kernel_version, load_all, verified};

#[test]
fn the_verifier_follows_as_many_instructions_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/verified-instructions.json");
    let recorded: BTreeMap<String, BTreeMap<String, u32>> =
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let version = kernel_version().unwrap();
    let now = verified(&load_all().unwrap()).unwrap();
    assert!(now.values().all(|count| (1..1_000_000).contains(count)), "{now:?}");
    match recorded.get(&version) {
        Some(then) => assert_eq!(
            &now, then,
            "the programs changed, or how they are compiled: if that is meant, `cargo xtask bench packet-cost` records it"
        ),
        None => println!(
            "no counts of Linux {version} are recorded, so that nothing was compared; `cargo xtask bench packet-cost` records \
             these: {now:?}"
        ),
    }
}
