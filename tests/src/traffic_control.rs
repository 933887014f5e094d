//! What hangs on the older traffic control of a host's interface, as `tc(8)` tells it, and filters of others there.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Host;

/// A filter as `tc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Its priority.
    pub priority: u64,
    /// Its kind, such as `bpf`.
    pub kind: String,
    /// The name that a `bpf` filter was given.
    pub name: String,
}

/// The filters at the ingress of an interface, in their order.
///
/// # Errors
///
/// When `tc` fails.
pub fn filters(host: &Host, interface: &str) -> Result<Vec<Filter>> {
    let text = tc(host, &format!("-json filter show dev {interface} ingress"))?;
    let list: Vec<Value> = if text.trim().is_empty() { Vec::new() } else { serde_json::from_str(&text)? };
    let filter = |entry: &Value| {
        // Each priority is listed once by itself, without options.
        let options = entry.get("options")?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let priority = entry.get("pref").and_then(Value::as_u64)?;
        Some(Filter { priority, kind: text(entry.get("kind")), name: text(options.get("bpf_name")) })
    };
    Ok(list.iter().filter_map(filter).collect())
}

/// Whether an interface has the discipline on which filters hang.
///
/// # Errors
///
/// When `tc` fails.
pub fn has_clsact(host: &Host, interface: &str) -> Result<bool> {
    Ok(tc(host, &format!("qdisc show dev {interface} clsact"))?.contains("clsact"))
}

/// Runs `tc` with these words. Returns what it says.
///
/// # Errors
///
/// When it fails.
pub fn tc(host: &Host, words: &str) -> Result<String> {
    let output = host.command("tc")?.args(words.split(' ')).output().context("tc did not run")?;
    ensure!(output.status.success(), "tc {words}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
