//! One lab: the names of its hosts and its directory.

use std::{
    path::Path,
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::{Context, Result, anyhow};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use crate::{Host, leftovers, programs};

/// What the names of everything that a lab makes begin with.
pub(crate) const PREFIX: &str = "lastsyn-lab-";

/// Open files that a process of the lab is allowed: a paced client that nobody answers holds a thousand connections.
const OPEN_FILES: u64 = 65_536;

/// Gives hosts their names and processes a directory. Cloning it shares both.
#[derive(Clone, Debug)]
pub struct Lab {
    name: Arc<str>,
    directory: Arc<TempDir>,
}

// === impl Lab ===

impl Lab {
    /// A new lab. The first one of a process sweeps what dead processes left.
    ///
    /// # Errors
    ///
    /// When the lab does not run as root, a program is missing, or leftovers cannot be removed.
    pub fn new() -> Result<Self> {
        static SWEPT: OnceLock<Result<(), String>> = OnceLock::new();
        static NEXT: AtomicU32 = AtomicU32::new(0);

        programs::preflight()?;
        raise_file_limit()?;
        SWEPT
            .get_or_init(|| leftovers::sweep().map_err(|error| format!("{error:#}")))
            .as_ref()
            .map_err(|why| anyhow!("what an earlier lab left cannot be swept: {why}"))?;

        let name = format!("{PREFIX}{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .tempdir()
            .context("no directory could be made for the lab's files")?;
        Ok(Self { name: name.into(), directory: Arc::new(directory) })
    }

    /// What the names of the lab's namespaces begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the lab's processes keep configurations and sockets. Gone with the last of the lab's hosts.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A new host, called `role` in messages; roles are unique within a lab.
    ///
    /// # Errors
    ///
    /// When the namespace cannot be made.
    pub fn host(&self, role: &str) -> Result<Host> {
        Host::new(self.clone(), role)
    }
}

/// Raises the soft limit where the hard one allows. Processes of the lab inherit it.
fn raise_file_limit() -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES));
    if current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
            .with_context(|| format!("the limit of open files could not be raised to {wanted}"))?;
    }
    Ok(())
}
