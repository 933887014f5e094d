//! What is written about the chart's values, and the versions in it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use lastsyn::config;
use serde_json::{Value, json};

use crate::variants::chart;

fn schema() -> Result<Value> {
    Ok(serde_json::from_str(&chart().file("values.schema.json")?)?)
}

fn values() -> Result<Value> {
    serde_saphyr::from_str(&chart().file("values.yaml")?).context("values.yaml")
}

/// Every value by its key, as deep as the schema knows what is in it; `config` is one.
fn leaves(schema: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match key.as_str() {
            // Helm's own.
            "global" => {}
            _ if property.get("properties").is_some() && key != "config" => leaves(property, &key, found),
            _ => drop(found.insert(key, property["description"].as_str().unwrap_or_default().to_owned())),
        }
    }
}

#[test]
fn every_value_is_described_and_stands_in_the_table_with_its_default() -> Result<()> {
    let (mut described, values, readme) = (BTreeMap::new(), values()?, chart().file("README.md")?);
    leaves(&schema()?, "", &mut described);
    let table = readme.split("| key | default | |").nth(1).context("no table of values")?;
    let rows: BTreeMap<&str, &str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | ")).collect();
    ensure!(
        rows.keys().copied().collect::<BTreeSet<_>>() == described.keys().map(String::as_str).collect(),
        "the table has {:?}\nand the schema {:?}",
        rows.keys(),
        described.keys()
    );
    for (key, text) in &described {
        let value = key.split('.').try_fold(&values, |tree, part| tree.get(part));
        let value = value.with_context(|| format!("values.yaml has no {key}"))?;
        ensure!(!text.is_empty(), "{key} is not described");
        let row = format!("`{value}` | {text} |");
        ensure!(rows.get(key.as_str()) == Some(&row.as_str()), "the row of {key} is to be:\n| `{key}` | {row}");
    }
    // What the schema does not know is nothing that the chart uses.
    let known = schema()?["properties"].as_object().context("no properties")?.keys().cloned().collect::<BTreeSet<_>>();
    let given = values.as_object().context("no values")?.keys().cloned().collect::<BTreeSet<_>>();
    ensure!(known.difference(&given).collect::<Vec<_>>() == ["global"] && given.is_subset(&known), "{given:?}");
    Ok(())
}

#[test]
fn the_schema_knows_every_key_of_the_agents_configuration() -> Result<()> {
    fn keys(section: &Value, path: &[&str], found: &mut BTreeMap<String, String>) {
        for (name, property) in section["properties"].as_object().into_iter().flatten() {
            let path = [path, &[name]].concat();
            if property.get("properties").is_some() {
                keys(property, &path, found);
            } else {
                found.insert(path.join("."), property["description"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    let mut described = BTreeMap::new();
    keys(&schema()?["properties"]["config"], &[], &mut described);
    for key in config::keys() {
        let text = described.remove(key.name());
        ensure!(
            text.is_some_and(|text| !text.is_empty()),
            "charts/lastsyn/values.schema.json does not describe config.{}",
            key.name()
        );
    }
    ensure!(described.is_empty(), "these are no keys of the configuration: {described:?}");
    Ok(())
}

#[test]
fn the_versions_are_in_step() -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let about: Value = serde_saphyr::from_str(&chart().file("Chart.yaml")?)?;
    ensure!(about["version"] == version && about["appVersion"] == version, "{about}");
    ensure!(values()?["image"]["tag"] == json!(version), "image.tag of values.yaml is not {version}");
    let example = lastsyn_tests::helm::Chart::of_the_repository("examples/haproxy");
    let about: Value = serde_saphyr::from_str(&example.file("Chart.yaml")?)?;
    ensure!(about["dependencies"][0]["version"] == version, "{about}");
    Ok(())
}
