//! What the program is made of, as a `CycloneDX` document (version 1.5): every package whose code is in it, those of the kernel
//! programs included. It comes from cargo's own resolution and `Cargo.lock`, and has no time and no number of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::binary::Target;
use crate::{object, process, workspace};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// None for what is linked; else `dev` or `build`.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// The document for a target.
pub(super) fn of(root: &Path, target: &Target) -> Result<String> {
    let text = process::read(workspace::cargo(root).args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform",
        target.triple,
    ]))?;
    let metadata: Metadata = serde_json::from_str(&text).context("cargo's metadata is not as it was")?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let document = document(&metadata, &lock)?;
    Ok(format!("{document:#}\n"))
}

fn document(metadata: &Metadata, lock: &str) -> Result<Value> {
    let lock: Lock = toml::from_str(lock).context("Cargo.lock is not as it was")?;
    let checksums: BTreeMap<(&str, &str), &str> = lock
        .package
        .iter()
        .filter_map(|locked| Some(((locked.name.as_str(), locked.version.as_str()), locked.checksum.as_deref()?)))
        .collect();
    let by_id: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let root = |name: &str| -> Result<&Package> {
        let package = metadata.packages.iter().find(|package| package.name == name && package.source.is_none());
        package.with_context(|| format!("the workspace has no package {name}"))
    };
    let program = root("lastsyn")?;
    let linked = linked_with(metadata, &[&program.id, &root(object::PACKAGE)?.id]);
    let mut components: Vec<&Package> = linked.iter().filter_map(|id| by_id.get(id).copied()).collect();
    components.sort_by_key(|package| (&package.name, &package.version));
    let components: Vec<Value> = components
        .into_iter()
        .filter(|package| package.id != program.id)
        .map(|package| component(package, checksums.get(&(package.name.as_str(), package.version.as_str())).copied()))
        .collect();
    let mut own = component(program, None);
    if let Some(own) = own.as_object_mut() {
        own.insert("type".to_owned(), json!("application"));
    }
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": own},
        "components": components,
    }))
}

fn component(package: &Package, checksum: Option<&str>) -> Value {
    let Package { name, version, license, .. } = package;
    let url = format!("pkg:cargo/{name}@{version}");
    let mut component = json!({"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url});
    if let Some(component) = component.as_object_mut() {
        if let Some(license) = license {
            // Cargo's older way to write `OR`.
            let expression = license.replace('/', " OR ");
            component.insert("licenses".to_owned(), json!([{"expression": expression}]));
        }
        if let Some(checksum) = checksum {
            component.insert("hashes".to_owned(), json!([{"alg": "SHA-256", "content": checksum}]));
        }
    }
    component
}

/// The packages themselves, and all that is linked into them.
fn linked_with<'a>(metadata: &'a Metadata, packages: &[&'a str]) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Node> = metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut found = BTreeSet::new();
    let mut open = packages.to_vec();
    while let Some(id) = open.pop() {
        if found.insert(id) {
            let dependencies = nodes.get(id).into_iter().flat_map(|node| &node.deps);
            let linked = dependencies.filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            open.extend(linked.map(|dependency| dependency.pkg.as_str()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_in_the_program_is_listed_with_its_digest_and_none_that_only_tests_or_builds_it() {
        let root = workspace::root().unwrap();
        let bill: Value = serde_json::from_str(&of(&root, &Target::of(None).unwrap()).unwrap()).unwrap();
        let components = bill["components"].as_array().unwrap();
        let named = |name: &str| components.iter().find(|component| component["name"] == name);
        for name in ["tokio", "aya", "aya-ebpf", "lastsyn-common"] {
            assert!(named(name).is_some(), "{name} is in the program");
        }
        for name in ["proptest", "cc", "lastsyn", "clap_complete"] {
            assert!(named(name).is_none(), "{name} is not in the program, or is the program");
        }
        assert_eq!(bill["metadata"]["component"]["name"], "lastsyn");
        let tokio = named("tokio").unwrap();
        assert_eq!(tokio["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert_eq!(tokio["licenses"][0]["expression"], "MIT");
        for component in components {
            assert!(component["licenses"].is_array(), "{component}");
        }
    }
}
