//! What a pod exchanges with the API server, counted by the kernel in the pod's own namespace: whole IP packets, with the
//! handshakes of TCP and TLS.

use std::ops::Sub;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::addresses::API_PORT;
use crate::{Host, programs};

/// The table of the counters.
const TABLE: &str = "api-traffic";

/// Counts from its making on, for as long as the host is there.
#[derive(Clone, Debug)]
pub struct ApiTraffic {
    host: Host,
}

/// An amount, both ways together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

// === impl ApiTraffic ===

impl ApiTraffic {
    /// Begins to count in a host.
    ///
    /// # Errors
    ///
    /// When the rules cannot be added.
    pub fn count(host: &Host) -> Result<Self> {
        host.nft(&format!(
            "table inet {TABLE} {{\n\
               counter both {{ }}\n\
               chain out {{ type filter hook output priority -300; tcp dport {API_PORT} counter name both; }}\n\
               chain in {{ type filter hook input priority -300; tcp sport {API_PORT} counter name both; }}\n\
             }}\n"
        ))?;
        Ok(Self { host: host.clone() })
    }

    /// What has been counted so far.
    ///
    /// # Errors
    ///
    /// When the counter cannot be read.
    pub fn so_far(&self) -> Result<Amount> {
        let mut command = self.host.command(programs::find("nft")?)?;
        let output =
            command.args(["-j", "list", "counter", "inet", TABLE, "both"]).output().context("nft did not run")?;
        ensure!(output.status.success(), "nft: {}", String::from_utf8_lossy(&output.stderr).trim());
        let list: Value = serde_json::from_slice(&output.stdout).context("what nft lists is no JSON")?;
        let mut entries = list.get("nftables").and_then(Value::as_array).into_iter().flatten();
        let counter = entries.find_map(|entry| entry.get("counter")).context("nft lists no counter")?;
        let number =
            |key: &str| counter.get(key).and_then(Value::as_u64).with_context(|| format!("no {key} in {counter}"));
        Ok(Amount { packets: number("packets")?, bytes: number("bytes")? })
    }
}

// === impl Amount ===

impl Sub for Amount {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { packets: self.packets.saturating_sub(earlier.packets), bytes: self.bytes.saturating_sub(earlier.bytes) }
    }
}
