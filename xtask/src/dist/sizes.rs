//! How large what is handed out is, for the record below `results`. Digests are not kept there: they are another's after every
//! change, and `SHA256SUMS` has them.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{LARGEST_IMAGE, Made, binary::Target, size};

/// The record, below the repository's root.
const FILE: &str = "results/dist.json";

/// Writes the record of a program and an image that two builds in two directories gave alike.
pub(super) fn record(root: &Path, target: &Target, made: &Made) -> Result<()> {
    let record = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "platform": target.platform,
        "binaryBytes": size(&made.binary)?,
        "imageBytes": size(&made.image)?,
        "largestImageBytes": LARGEST_IMAGE,
        "buildsThatGaveTheSameBytes": 2,
    });
    let path = root.join(FILE);
    fs::write(&path, format!("{record:#}\n")).with_context(|| format!("cannot write {}", path.display()))
}
