//! Whether `deny.toml` is true: each dependency's licence is one that it allows, none is banned, and all come from where it says.
//!
//! Its keys are cargo-deny's, and what is read of them means the same there.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use crate::{process, workspace};

/// The file, below the repository's root.
const FILE: &str = "deny.toml";

#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Clone, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for the workspace's own.
    source: Option<String>,
}

/// Fails with every package that the rules do not allow, and every licence that they allow for nothing.
pub(crate) fn check(root: &Path) -> Result<()> {
    let rules = rules(root)?;
    let failures = failures(&rules, &packages(root, &rules)?)?;
    if !failures.is_empty() {
        bail!("dependencies are not what {FILE} says: {}", failures.join("; "));
    }
    Ok(())
}

fn rules(root: &Path) -> Result<Rules> {
    let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    toml::from_str(&text).with_context(|| format!("{FILE} is not as cargo-deny reads it"))
}

/// Everything that is built, by whom and for what ever: tests and build scripts as well.
fn packages(root: &Path, rules: &Rules) -> Result<Vec<Package>> {
    let mut cargo = workspace::cargo(root);
    cargo.args(["metadata", "--format-version=1", "--locked"]);
    for target in &rules.graph.targets {
        cargo.args(["--filter-platform", target]);
    }
    let metadata: Metadata =
        serde_json::from_str(&process::read(&mut cargo)?).context("cargo's metadata is not as it was")?;
    Ok(metadata.packages)
}

fn failures(rules: &Rules, packages: &[Package]) -> Result<Vec<String>> {
    let allowed = rules.licenses.allow.iter().map(|name| {
        Ok((name, Licensee::parse(name).with_context(|| format!("{FILE}: `{name}` is no licence of the SPDX list"))?))
    });
    let allowed = allowed.collect::<Result<Vec<_>>>()?;
    let (mut failures, mut needed) = (Vec::new(), BTreeSet::new());
    for Package { name, version, license, source } in packages {
        if let Some(banned) = rules.bans.deny.iter().find(|banned| banned.name == *name) {
            failures.push(format!("{name} {version} is banned ({})", banned.reason));
        }
        // What is licensed here is this project's own choice.
        let Some(source) = source else { continue };
        let registry = source.strip_prefix("registry+");
        if !registry.is_some_and(|registry| rules.sources.allow_registry.iter().any(|known| known == registry)) {
            failures.push(format!("{name} {version} comes from {source}"));
        }
        let Some(license) = license else {
            failures.push(format!("{name} {version} names no licence"));
            continue;
        };
        // The slash of old manifests is an `OR`.
        let expression = Expression::parse_mode(license, ParseMode::LAX)
            .with_context(|| format!("the licence of {name} {version}, `{license}`"))?;
        let is_met = expression.evaluate(|asked| {
            let mut given = allowed.iter().filter(|(_, licensee)| licensee.satisfies(asked)).peekable();
            let is_allowed = given.peek().is_some();
            needed.extend(given.map(|(entry, _)| entry.as_str()));
            is_allowed
        });
        if !is_met {
            failures.push(format!("the licence of {name} {version}, `{license}`, is not allowed"));
        }
    }
    let unused = rules.licenses.allow.iter().filter(|entry| !needed.contains(entry.as_str()));
    failures.extend(unused.map(|entry| format!("{entry} is allowed, and no dependency has it")));
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_the_repository() -> (Rules, Vec<Package>) {
        let root = workspace::root().unwrap();
        let rules = rules(&root).unwrap();
        let packages = packages(&root, &rules).unwrap();
        (rules, packages)
    }

    #[test]
    fn the_dependencies_are_what_the_file_says() {
        let (rules, packages) = of_the_repository();
        assert!(packages.len() > 100, "{}", packages.len());
        assert_eq!(failures(&rules, &packages).unwrap(), Vec::<String>::new());
        assert!(rules.bans.deny.iter().all(|banned| !banned.reason.is_empty()));
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        let (rules, packages) = of_the_repository();
        let registry = format!("registry+{}", rules.sources.allow_registry[0]);
        let with = |name: &str, license: Option<&str>, source: &str| {
            let package = Package {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                license: license.map(str::to_owned),
                source: Some(source.to_owned()),
            };
            failures(&rules, &[&packages[..], &[package]].concat()).unwrap().join("; ")
        };
        for (found, wanted) in [
            (with("x", Some("MIT/GPL-3.0-only"), &registry), ""),
            (with("x", Some("MIT AND GPL-3.0-only"), &registry), "the licence of x 1.0.0, `MIT AND GPL-3.0-only`"),
            (with("x", Some("GPL-3.0-only"), &registry), "is not allowed"),
            (with("x", None, &registry), "x 1.0.0 names no licence"),
            (with("x", Some("MIT"), "git+https://example.org/x"), "x 1.0.0 comes from git+https://example.org/x"),
            (with("openssl-sys", Some("MIT"), &registry), "openssl-sys 1.0.0 is banned (a C library"),
        ] {
            assert!(found.contains(wanted) && found.is_empty() == wanted.is_empty(), "{found:?}, not {wanted:?}");
        }
    }

    #[test]
    fn a_licence_that_nothing_has_is_named() {
        let (mut rules, packages) = of_the_repository();
        rules.licenses.allow.push("MPL-2.0".to_owned());
        let found = failures(&rules, &packages).unwrap();
        assert_eq!(found, ["MPL-2.0 is allowed, and no dependency has it"]);
        rules.licenses.allow.push("no such licence".to_owned());
        assert!(failures(&rules, &packages).is_err());
    }
}
