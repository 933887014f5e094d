//! The image as others read it: skopeo, which copies images between registries.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{binary::Target, image};
use crate::process;

/// Fails where another reads of the image something else than what was written: its processor, its version, who runs it, what runs.
pub(super) fn run(archive: &Path, target: &Target) -> Result<()> {
    check(archive, target.platform, env!("CARGO_PKG_VERSION"))
}

fn check(archive: &Path, platform: &str, version: &str) -> Result<()> {
    let image = read(archive, version, &[])?;
    let configuration = read(archive, version, &["--config"])?;
    for (document, pointer, wanted) in [
        (&image, "/Architecture", platform),
        (&image, "/Os", "linux"),
        (&image, "/Labels/org.opencontainers.image.version", version),
        (&configuration, "/config/User", image::USER),
        (&configuration, "/config/Entrypoint/0", "lastsyn"),
    ] {
        let found = document.pointer(pointer).and_then(Value::as_str);
        ensure!(found == Some(wanted), "skopeo reads {found:?} at {pointer} of {}, not {wanted}", archive.display());
    }
    let layers = image.pointer("/Layers").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(layers == 1, "skopeo finds {layers} layers in {}, not one", archive.display());
    Ok(())
}

fn read(archive: &Path, version: &str, arguments: &[&str]) -> Result<Value> {
    let place = format!("oci-archive:{}:{version}", archive.display());
    let text = process::read(Command::new("skopeo").arg("inspect").args(arguments).arg(place))?;
    serde_json::from_str(&text).context("skopeo printed no JSON")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn skopeo_reads_what_was_written_and_what_is_not_so_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join("image.tar");
        fs::write(&archive, image::assemble(b"the program", "arm64", "1.2.3").unwrap()).unwrap();
        check(&archive, "arm64", "1.2.3").unwrap();
        let error = check(&archive, "amd64", "1.2.3").unwrap_err().to_string();
        assert!(error.contains("Some(\"arm64\") at /Architecture"), "{error}");
        check(&archive, "arm64", "1.2.4").unwrap_err();
    }
}
