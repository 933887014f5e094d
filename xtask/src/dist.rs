//! `cargo xtask dist`: what is handed out of a version: the static program, its image, the shells' completions, a bill of
//! materials, and the digests of all of it.
//!
//! The same sources and the same toolchain are to give the same bytes, from any directory: `--twice` looks whether they do.

mod bill;
mod binary;
mod digest;
mod image;
mod inspection;
mod sizes;
mod trial;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use self::binary::Target;
use crate::{process, setup, workspace};

/// No image is larger, in bytes: 10 MiB.
const LARGEST_IMAGE: u64 = 10 << 20;

/// What to make.
#[derive(Args)]
pub(crate) struct Choice {
    /// For which processor: `x86_64`, or `aarch64` with Debian's gcc-aarch64-linux-gnu and rustup's target. Without it, for this
    /// machine's
    #[arg(long)]
    architecture: Option<String>,
    /// Make it a second time from a copy of the sources in another directory, and fail where a byte differs
    #[arg(long)]
    twice: bool,
}

/// What was made, by its files.
struct Made {
    binary: PathBuf,
    image: PathBuf,
}

pub(crate) fn run(root: &Path, choice: &Choice) -> Result<()> {
    let target = Target::of(choice.architecture.as_deref())?;
    let image_tools = setup::image_tools();
    let directory = root.join("target/dist");
    let made = make(root, &directory, &target)?;
    check_size(&made.image)?;
    match image_tools {
        Ok(()) => {
            inspection::run(&made.image, &target)?;
            if target.runs_here() {
                trial::run(root, &made.image)?;
            }
        }
        Err(error) => eprintln!("The image was NOT tried, as skopeo and umoci cannot be had: {error:#}"),
    }
    completions(root, &directory.join("completions"))?;
    fs::write(directory.join(format!("{}.cdx.json", target.release_name())), bill::of(root, &target)?)
        .context("cannot write the bill of materials")?;
    if choice.twice {
        compare_with_another_directory(root, &target, &made)?;
        if target.runs_here() {
            sizes::record(root, &target, &made)?;
        }
    }
    let sums = digest::sums(&directory)?;
    fs::write(directory.join("SHA256SUMS"), &sums).context("cannot write SHA256SUMS")?;
    eprintln!("{}:\n{sums}", directory.display());
    Ok(())
}

/// The program and its image, in a directory that has nothing else afterwards.
fn make(root: &Path, directory: &Path, target: &Target) -> Result<Made> {
    let built = binary::build(root, target)?;
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("cannot empty {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let name = target.release_name();
    let made = Made { binary: directory.join(&name), image: directory.join(format!("{name}.oci.tar")) };
    fs::copy(&built, &made.binary).with_context(|| format!("cannot copy {}", built.display()))?;
    image::write(&made.binary, target, &made.image)?;
    Ok(made)
}

fn check_size(image: &Path) -> Result<()> {
    let size = size(image)?;
    ensure!(size <= LARGEST_IMAGE, "{} has {size} bytes, more than {LARGEST_IMAGE}", image.display());
    Ok(())
}

/// In bytes.
fn size(file: &Path) -> Result<u64> {
    Ok(fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?.len())
}

/// They come from the program's own command line, by a program of the tests, so that the agent does not carry them.
fn completions(root: &Path, directory: &Path) -> Result<()> {
    process::run(
        workspace::cargo(root).args(["run", "--quiet", "--locked", "--bin", "completions", "--"]).arg(directory),
    )
}

/// Builds from a copy of the files that git knows, with nothing of what was built before.
fn compare_with_another_directory(root: &Path, target: &Target, made: &Made) -> Result<()> {
    let copy = tempfile::Builder::new().prefix("lastsyn-dist-").tempdir().context("cannot make a directory")?;
    let sources = copy.path().join("another").join("place");
    fs::create_dir_all(&sources).with_context(|| format!("cannot make {}", sources.display()))?;
    let archive = copy.path().join("sources.tar");
    process::run(
        Command::new("git").current_dir(root).args(["archive", "--format=tar", "--output"]).arg(&archive).arg("HEAD"),
    )?;
    process::run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&sources))?;
    let again = make(&sources, &sources.join("target/dist"), target)?;
    for (first, second) in [(&made.binary, &again.binary), (&made.image, &again.image)] {
        let (one, other) = (digest::of_file(first)?, digest::of_file(second)?);
        if one != other {
            bail!(
                "{} is not the same from another directory: {one} and {other}. Was it built from uncommitted changes? \
                 Otherwise a path of the machine is in it",
                first.display()
            );
        }
        eprintln!("the same from another directory: {} {one}", first.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_may_have_ten_mebibytes_and_not_a_byte_more() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(10 * 1024 * 1024).unwrap();
        check_size(file.path()).unwrap();
        file.as_file().set_len(10 * 1024 * 1024 + 1).unwrap();
        let error = check_size(file.path()).unwrap_err().to_string();
        assert!(error.contains("10485761 bytes, more than 10485760"), "{error}");
    }
}
