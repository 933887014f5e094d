//! The image is tried as it is: unpacked by another's tool, drains are held in a root directory that has nothing else, and the
//! tests of a drain's end run with the program in there.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::{process, workspace};

/// Runs the agent in the image's root, in a network namespace of its own. Beside what is in its image a container has `/proc` and
/// `/sys`: without the latter nobody knows how many processors the kernel's counters are for.
const AGENT: &str = "ip link set lo up && mount -t proc proc \"$0/proc\" && mount -t sysfs sysfs \"$0/sys\" && \
                     exec chroot \"$0\" /usr/bin/lastsyn run";

/// The same in whatever namespaces a test is in. The test's own unix socket gets a directory in the root.
const TESTED: &str = "mount -t proc proc \"$0/proc\" && mount -t sysfs sysfs \"$0/sys\" && \
                      mkdir -p \"$0${LASTSYN_SERVER_SOCKET%/*}\" && \
                      exec chroot \"$0\" /usr/bin/lastsyn \"$@\"";

/// Where it answers, as seen in the image's root.
const SOCKET: &str = "run/lastsyn/hook.sock";

/// How often the agent's socket is looked for, and how long.
const LOOKS: u32 = 400;
const BETWEEN: Duration = Duration::from_millis(50);

/// The root directory of an image, unpacked below a directory by umoci.
pub(super) fn unpack(archive: &Path, directory: &Path) -> Result<PathBuf> {
    let layout = directory.join("layout");
    fs::create_dir(&layout).with_context(|| format!("cannot make {}", layout.display()))?;
    process::run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&layout))?;
    let bundle = directory.join("bundle");
    let index = fs::read_to_string(layout.join("index.json")).context("the image has no index")?;
    let index: Value = serde_json::from_str(&index).context("the image's index is no JSON")?;
    let tag = index.pointer("/manifests/0/annotations/org.opencontainers.image.ref.name").and_then(Value::as_str);
    process::run(
        Command::new("umoci")
            .args(["unpack", "--image"])
            .arg(format!("{}:{}", layout.display(), tag.context("the image has no tag")?))
            .arg(&bundle),
    )?;
    Ok(bundle.join("rootfs"))
}

/// Holds a drain from an otherwise empty root, and runs the drain's tests with the program in it.
pub(super) fn run(workspace: &Path, archive: &Path) -> Result<()> {
    if process::read(Command::new("id").arg("-u"))? != "0" {
        eprintln!("Not tried: only root may run the image's program in its own root directory");
        return Ok(());
    }
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let root = unpack(archive, directory.path())?;
    for place in ["proc", "sys"] {
        fs::create_dir(root.join(place)).with_context(|| format!("cannot make the root's /{place}"))?;
    }

    // Without an agent the hook holds to its own bound.
    let alone = hook(&root, "1s")?;
    ensure!(alone.pointer("/by").and_then(Value::as_str) == Some("hook"), "a verdict without an agent: {alone}");

    let agent = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", AGENT])
        .arg(&root)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("the agent did not start: util-linux's unshare is needed")?;
    let mut agent = Agent(agent);
    agent.await_socket(&root.join(SOCKET))?;
    let verdict = hook(&root, "20s")?;
    let reason = verdict.get("reason").and_then(Value::as_str).unwrap_or_default();
    ensure!(verdict.get("by").is_none() && reason != "bound", "the agent in an empty root gave no verdict: {verdict}");
    let sensor = verdict.pointer("/sensor/strategy").and_then(Value::as_str).unwrap_or("none");
    eprintln!("A drain from an empty root ended `{reason}`, with the sensor {sensor}");
    drop(agent);
    drain_tests(workspace, &root, directory.path())
}

/// `tests/tests/drain.rs`, on the real kernel with real clients. They start a script in place of the program.
fn drain_tests(workspace: &Path, root: &Path, directory: &Path) -> Result<()> {
    let script = directory.join("lastsyn");
    let text = format!("#!/bin/sh\nexec unshare --mount sh -c '{TESTED}' '{}' \"$@\"\n", root.display());
    fs::write(&script, text).with_context(|| format!("cannot write {}", script.display()))?;
    fs::set_permissions(&script, Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} a program", script.display()))?;
    process::run(
        workspace::cargo(workspace)
            .args(["test", "--quiet", "--locked", "--package", "lastsyn-tests", "--test", "drain"])
            .env("LASTSYN_BINARY", &script),
    )
    .context("the tests of a drain's end, with the image's program in an empty root")
}

/// Runs the image's hook, and returns what it printed.
fn hook(root: &Path, max_wait: &str) -> Result<Value> {
    // Without an environment it would not be found where Debian has it.
    let chroot = process::find_program("chroot").context("coreutils' chroot is missing")?;
    let text = process::read(
        Command::new(chroot)
            .arg(root)
            .args(["/usr/bin/lastsyn", "drain", "--json", "--max-wait", max_wait, "--agent"])
            .arg(format!("unix:/{SOCKET}"))
            .env_clear(),
    )?;
    serde_json::from_str(&text).with_context(|| format!("the hook printed `{text}`"))
}

/// Ended when it is dropped.
struct Agent(Child);

impl Agent {
    fn await_socket(&mut self, socket: &Path) -> Result<()> {
        for _ in 0..LOOKS {
            if let Some(status) = self.0.try_wait().context("the agent is not known")? {
                let mut said = String::new();
                if let Some(error) = &mut self.0.stderr {
                    std::io::Read::read_to_string(error, &mut said).ok(); // what it said is all that is missed
                }
                bail!("the agent in an empty root ended ({status}): {said}");
            }
            if socket.exists() {
                return Ok(());
            }
            pause();
        }
        bail!("the agent in an empty root opened no {}", socket.display())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Its namespaces, and with them the mount, go with it.
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("the agent that was tried may still run: {error}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "between two looks at a condition")]
fn pause() {
    thread::sleep(BETWEEN);
}
