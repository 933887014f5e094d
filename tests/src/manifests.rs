//! Manifests as people write them: YAML, several in a file.

use anyhow::{Context, Result};
use serde_json::Value;

/// Reads the manifests of a text, without what is empty.
///
/// # Errors
///
/// When it is no YAML.
pub fn read(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("this is no YAML")?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The kind of a manifest; none where it has none.
pub fn kind(manifest: &Value) -> &str {
    manifest.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// The `spec` of the pods that a manifest makes, or of the pod that it is.
pub fn pod_spec(manifest: &Value) -> Option<&Value> {
    match kind(manifest) {
        "Pod" => manifest.get("spec"),
        "Deployment" | "DaemonSet" | "StatefulSet" | "Job" => manifest.pointer("/spec/template/spec"),
        _ => None,
    }
}

/// A container of a pod's `spec` by its name, also among those that run first.
pub fn container<'a>(spec: &'a Value, name: &str) -> Option<&'a Value> {
    let lists = ["initContainers", "containers"].into_iter().filter_map(|list| spec.get(list)?.as_array());
    lists.flatten().find(|container| container.get("name").and_then(Value::as_str) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_document_and_no_empty_one() {
        let read = read("---\n# nothing\n---\nkind: A\n---\nkind: B\nspec: {mode: 0444, on: yes}\n---\n").unwrap();
        assert_eq!(read.iter().map(kind).collect::<Vec<_>>(), ["A", "B"]);
    }

    #[test]
    fn finds_a_container_wherever_it_is() {
        let spec: Value = serde_saphyr::from_str("{initContainers: [{name: a}], containers: [{name: b}]}").unwrap();
        assert!(container(&spec, "a").is_some() && container(&spec, "b").is_some() && container(&spec, "c").is_none());
    }
}
