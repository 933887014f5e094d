//! Helm itself, which lints and renders charts: its Go SDK behind a small script. `cargo xtask setup` gets it.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{manifests, programs};

/// Where it is in the cache; the version is that of `xtask/src/setup/helm.rs`.
const SDK: &str = "helm-python-sdk-0.2.2";
/// What speaks to it.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/helm/helm.py");

/// A chart on disk.
#[derive(Clone, Debug)]
pub struct Chart {
    path: PathBuf,
}

/// A chart with values, as it is to be rendered.
#[derive(Clone, Debug)]
pub struct Release<'a> {
    /// Its name.
    pub name: &'a str,
    /// The namespace that it goes to.
    pub namespace: &'a str,
    /// What differs from the chart's own values.
    pub values: Value,
}

// === impl Chart ===

impl Chart {
    /// A chart of the repository, by its place below `charts`.
    pub fn of_the_repository(name: &str) -> Self {
        Self { path: Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts").join(name) }
    }

    /// A copy of it in a directory, with another chart as its dependency, as `helm dependency build` puts it there.
    ///
    /// # Errors
    ///
    /// When it cannot be copied.
    pub fn with_dependency(&self, dependency: &Self, directory: &Path) -> Result<Self> {
        let path = directory.join("chart");
        copy(&self.path, &path)?;
        let name = dependency.path.file_name().context("a chart's directory has a name")?;
        copy(&dependency.path, &path.join("charts").join(name))?;
        Ok(Self { path })
    }

    /// A file of it.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn file(&self, name: &str) -> Result<String> {
        let path = self.path.join(name);
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))
    }

    /// What Helm's linter has to say, warnings too.
    ///
    /// # Errors
    ///
    /// When Helm does not run.
    pub fn lint(&self, values: &Value) -> Result<Vec<String>> {
        let found = self.ask("lint", &Release { name: "lint", namespace: "lint", values: values.clone() })?;
        let found = found.map_err(anyhow::Error::msg)?;
        let texts = |key: &str| -> Vec<String> {
            let list = found.get(key).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        Ok([texts("messages"), texts("errors")].concat())
    }

    /// The manifests, by the names of their files. The inner error is Helm's own: what values it refuses, and why.
    ///
    /// # Errors
    ///
    /// When Helm does not run, or renders what is no manifest.
    pub fn render(&self, release: &Release<'_>) -> Result<Result<BTreeMap<String, Vec<Value>>, String>> {
        let files = match self.ask("render", release)? {
            Ok(files) => files,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let files = files.as_object().context("Helm rendered no files")?;
        let mut rendered = BTreeMap::new();
        for (name, text) in files.iter().filter(|(name, _)| Path::new(name).extension().is_none_or(|end| end != "txt"))
        {
            let text = text.as_str().context("Helm rendered a file that is no text")?;
            let read = manifests::read(text).with_context(|| format!("{name} as it was rendered:\n{text}"))?;
            if !read.is_empty() {
                rendered.insert(name.clone(), read);
            }
        }
        Ok(Ok(rendered))
    }

    fn ask(&self, verb: &str, release: &Release<'_>) -> Result<Result<Value, String>> {
        let Release { name, namespace, values } = release;
        let request = json!({
            "verb": verb, "chart": self.path, "values": values, "name": name, "namespace": namespace,
        });
        let mut helm = Command::new(programs::find("python3")?)
            .args(["-B", SCRIPT])
            .env("PYTHONPATH", programs::cached_directory(SDK)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("Helm did not start")?;
        helm.stdin.take().context("Helm takes no input")?.write_all(request.to_string().as_bytes())?;
        let output = helm.wait_with_output().context("Helm did not end")?;
        ensure!(output.status.success(), "Helm failed: {}", String::from_utf8_lossy(&output.stderr));
        let mut answer: Value = serde_json::from_slice(&output.stdout).context("Helm's answer is no JSON")?;
        if let Some(refusal) = answer.get("error").and_then(Value::as_str) {
            return Ok(Err(refusal.to_owned()));
        }
        answer.get_mut("ok").map(Value::take).map(Ok).context("Helm gave no answer")
    }
}

/// Holds documents against a JSON Schema (draft 2020-12), by the validator that Helm holds values against. What the schema does not
/// name is refused, whatever it says of that itself. The inner error is the validator's.
///
/// # Errors
///
/// When Helm does not run.
pub fn validate(schema: &Value, documents: &[Value]) -> Result<Result<(), String>> {
    let mut one = schema.clone();
    let named = one.as_object_mut().context("the schema is no object")?;
    let definitions = named.remove("$defs").unwrap_or_default();
    named.remove("$schema");
    // A list, of which Helm leaves every null as it is.
    let mut whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"documents": {"type": "array", "items": one}},
        "required": ["documents"],
        "$defs": definitions,
    });
    for part in ["/properties/documents/items", "/$defs"] {
        whole.pointer_mut(part).map(only_what_is_named).context("the schema has no such part")?;
    }
    let directory = tempfile::tempdir()?;
    let chart = Chart { path: directory.path().to_owned() };
    fs::write(chart.path.join("Chart.yaml"), "apiVersion: v2\nname: documents\nversion: 0.0.0\n")?;
    fs::write(chart.path.join("values.schema.json"), whole.to_string())?;
    let values = json!({ "documents": documents });
    Ok(chart.render(&Release { name: "documents", namespace: "documents", values })?.map(drop))
}

fn only_what_is_named(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            fields.values_mut().for_each(only_what_is_named);
        }
        Value::Array(values) => values.iter_mut().for_each(only_what_is_named),
        _ => {}
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("{} was not made", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be listed", from.display()))? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).with_context(|| format!("{} was not copied", path.display()))?;
        }
    }
    Ok(())
}
