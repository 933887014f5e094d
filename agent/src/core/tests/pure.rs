//! The core is pure: no clock, no I/O, no async, no randomness. What comes in comes in through its arguments.

use std::path::Path;

/// What a rule can need: arithmetic, collections, and the derives of what is sent out.
const CRATES: [&str; 5] = ["crate", "serde", "std", "super", "thiserror"];

const IMPURE: [&str; 13] = [
    ".await",
    "Instant",
    "SystemTime",
    "async ",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "Mutex",
    "RandomState",
    "HashMap",
];

#[test]
fn the_core_knows_nothing_of_the_world_but_its_events() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core");
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for line in code.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            let used = line.strip_prefix("use ").and_then(|used| used.split([':', ';']).next());
            assert!(used.is_none_or(|used| CRATES.contains(&used)), "{}: {line}", path.display());
            let crates = ["tokio", "aya", "kube", "rustix", "tracing", "jiff", "libc"];
            let impure = IMPURE.into_iter().chain(crates).find(|word| line.contains(word));
            assert_eq!(impure, None, "{}: {line}", path.display());
        }
    }
    assert!(files > 15, "{files} files");
}
