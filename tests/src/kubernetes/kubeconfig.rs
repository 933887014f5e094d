//! Files that tell a client where the API server is and who it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::json;

use super::certificates::Identity;

/// Writes the file for one client of the API server at `server`, a URL. JSON is YAML.
pub(crate) fn write(path: &Path, server: &str, authority: &Path, identity: &Identity) -> Result<PathBuf> {
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "lab", "user": {
            "client-certificate": identity.certificate, "client-key": identity.key,
        }}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    });
    fs::write(path, text.to_string()).with_context(|| format!("{} was not written", path.display()))?;
    Ok(path.to_owned())
}
