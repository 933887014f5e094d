//! The oldest Rust that builds this is the one that it is built and tested with: no other is claimed.

use std::path::Path;

use anyhow::Result;

use super::{Workspace, read};

/// Where it is told or taken, and by which words: `{}` stands for the version.
const PLACES: [(&str, &str); 5] = [
    ("README.md", "Rust {}"),
    ("CONTRIBUTING.md", "Rust {}"),
    ("Dockerfile", "FROM rust:{}-"),
    (".github/workflows/test.yml", "image: rust:{}-"),
    (".github/workflows/release.yml", "image: rust:{}-"),
];

pub(super) fn failures(root: &Path, workspace: &Workspace) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    for (file, words) in PLACES {
        let wanted = words.replace("{}", &workspace.minimum);
        let prefix = words.split("{}").next().unwrap_or_default();
        let text = read(root, file)?;
        let said: Vec<String> = text
            .split(prefix)
            .skip(1)
            .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
            .map(|rest| rest.chars().take_while(|one| one.is_ascii_digit() || *one == '.').collect::<String>())
            .map(|version| version.trim_end_matches('.').to_owned())
            .collect();
        if said.is_empty() {
            failures.push(format!("{file} does not say `{wanted}`, which is Cargo.toml's rust-version"));
        }
        let others = said.into_iter().filter(|said| *said != workspace.minimum);
        failures.extend(others.map(|other| {
            format!("{file} says `{prefix}{other}`, and Cargo.toml's rust-version is {}", workspace.minimum)
        }));
    }
    Ok(failures)
}

/// A version is made by the toolchain that it names, so that the name is known to be true. `rustc --version` is `said`.
pub(super) fn toolchain(minimum: &str, said: &str) -> Option<String> {
    let version = said.strip_prefix("rustc ").unwrap_or_default();
    let is_it = version.strip_prefix(minimum).is_some_and(|rest| rest.starts_with('.'));
    (!is_it).then(|| {
        format!(
            "Cargo.toml's rust-version is {minimum}, and this is `{said}`: run it as `cargo +{minimum} xtask release`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_toolchain_that_is_named_makes_a_version() {
        assert_eq!(toolchain("1.95", "rustc 1.95.0 (59807616e 2026-04-14)"), None);
        for said in ["rustc 1.96.0 (x)", "rustc 1.9.0 (x)", "rustc 1.950.0", ""] {
            assert!(toolchain("1.95", said).unwrap().contains("rust-version is 1.95"), "{said}");
        }
    }
}
