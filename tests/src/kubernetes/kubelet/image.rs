//! Images without a builder: archives as `docker save` writes them, of programs of this machine and what they are linked
//! with.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{agent, envoy, kubernetes::binaries, programs};

/// The image with `haproxy`, `lastsyn` for its hook, and a shell. Its stop signal is the one on which `HAProxy` closes its
/// listeners and ends with its last connection.
pub const WEB_IMAGE: &str = "lab.local/web:1";
/// The image with `lastsyn` and a shell.
pub const AGENT_IMAGE: &str = "lab.local/agent:1";
/// The image with `envoy`, `lastsyn` for its hook, and a shell.
pub(crate) const ENVOY_IMAGE: &str = "lab.local/envoy:1";
/// The image of the process that holds a pod's namespaces.
pub(super) const PAUSE_IMAGE: &str = "lab.local/pause:1";

/// The shell's tools that tests use.
const TOOLS: [&str; 7] = ["sh", "sleep", "cat", "echo", "wget", "date", "awk"];

/// Writes an archive of each image into a directory; that of Envoy where it is asked for.
pub(super) fn write_all(directory: &Path, envoy: bool) -> Result<()> {
    let busybox = binaries::find_runtime("busybox")?;
    let (haproxy, agent) = (programs::find("haproxy")?, agent::program()?);
    let sleep = json!({"Cmd": ["/bin/sleep", "2147483647"]});
    write(directory, "pause", PAUSE_IMAGE, &[&busybox], sleep)?;
    write(directory, "web", WEB_IMAGE, &[&busybox, &haproxy, &agent], json!({"StopSignal": "SIGUSR1"}))?;
    if envoy {
        let envoy = envoy::program()?;
        write(directory, "envoy", ENVOY_IMAGE, &[&busybox, &envoy, &agent], json!({}))?;
    }
    write(directory, "agent", AGENT_IMAGE, &[&busybox, &agent], json!({}))
}

fn write(directory: &Path, name: &str, tag: &str, programs: &[&PathBuf], mut settings: Value) -> Result<()> {
    let work = tempfile::tempdir_in(directory).context("no directory for an image")?;
    let root = work.path().join("root");
    let bin = root.join("bin");
    for made in ["bin", "tmp", "run", "etc", "proc", "sys", "dev"] {
        let made = root.join(made);
        fs::create_dir_all(&made).with_context(|| format!("{} was not made", made.display()))?;
    }
    for program in programs {
        let file = program.file_name().context("a program has a name")?;
        copy(program, &bin.join(file))?;
        for library in libraries(program)? {
            // Where it is linked from, though directories may be links on this machine.
            let place = root.join(library.strip_prefix("/").unwrap_or(&library));
            if !place.exists() {
                copy(&library, &place)?;
            }
        }
    }
    for tool in TOOLS {
        symlink("busybox", bin.join(tool)).with_context(|| format!("{tool} was not linked"))?;
    }
    let layer = work.path().join("layer.tar");
    tar(&root, &layer, &["."])?;
    let digest = run(Command::new("sha256sum").arg(&layer))?;
    let digest = digest.split_whitespace().next().context("no digest of an image's layer")?;
    if let Some(settings) = settings.as_object_mut() {
        settings.insert("Env".to_owned(), json!(["PATH=/bin"]));
    }
    let config = json!({
        "architecture": "amd64", "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    });
    let manifest = json!([{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]);
    for (file, content) in [("config.json", config), ("manifest.json", manifest)] {
        fs::write(work.path().join(file), content.to_string()).with_context(|| format!("{file} was not written"))?;
    }
    tar(work.path(), &directory.join(format!("{name}.tar")), &["config.json", "manifest.json", "layer.tar"])
}

/// What a program is linked with when it starts; nothing for a static one.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd did not run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .filter(|path| path.is_file())
        .collect())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory).with_context(|| format!("{} was not made", directory.display()))?;
    }
    fs::copy(from, to).map(drop).with_context(|| format!("{} was not copied to {}", from.display(), to.display()))
}

fn tar(directory: &Path, archive: &Path, members: &[&str]) -> Result<()> {
    run(Command::new("tar").arg("--create").arg("--file").arg(archive).arg("--directory").arg(directory).args(members))
        .map(drop)
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} did not run"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
