//! The core is pure: no clock, no I/O, no async, no randomness. What comes in comes in through its arguments.

use std::path::{Path, PathBuf};

/// What a rule can need besides the standard library: the derives of what is sent out.
const ALLOWED: [&str; 2] = ["serde", "thiserror"];

const IMPURE: [&str; 13] = [
    ".await;",
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
    let files = rules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core"));
    let crates = dependencies();
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for line in code.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            let used = line.strip_prefix("use ").and_then(|used| used.split([':', ';']).next());
            assert!(used.is_none_or(|used| !crates.iter().any(|name| name == used)), "{}: {line}", path.display());
            let paths = crates.iter().map(|name| format!("{name}::"));
            let impure = IMPURE.into_iter().map(str::to_owned).chain(paths).find(|word| line.contains(word.as_str()));
            assert_eq!(impure, None, "{}: {line}", path.display());
        }
    }
    assert!(files.len() > 40, "{} files", files.len());
}

/// The agent's dependencies, as its code names them.
fn dependencies() -> Vec<String> {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split(['.', ' ', '=']).next());
    let names: Vec<_> = names.filter(|name| !name.is_empty() && !ALLOWED.contains(name)).collect();
    assert!(names.contains(&"tokio"), "{names:?}");
    names.into_iter().map(|name| name.replace('-', "_")).collect()
}

/// Every source file below, but for the tests.
fn rules(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            files.extend(rules(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
