//! Stands between one kube-proxy and the programs that it writes its rules with: each write takes longer, or fails.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::programs;

/// What writes rules. What is only asked of them is passed on as it is: `nft` writes what it is given by `-f`.
const PROGRAMS: [(&str, &str); 3] = [("nft", "*' -f '*"), ("iptables-restore", "*"), ("ip6tables-restore", "*")];

/// What becomes of the writes of one kube-proxy.
#[derive(Debug)]
pub struct RuleWriter {
    directory: PathBuf,
}

/// How a kube-proxy's writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// As ever.
    Pass,
    /// Each begins that much later.
    Late(Duration),
    /// Each fails, and the rules stay as they are.
    Fail,
}

// === impl RuleWriter ===

impl RuleWriter {
    /// Writes the programs into a directory of a host.
    pub(super) fn install(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("{} was not made", directory.display()))?;
        let writer = Self { directory: directory.to_owned() };
        writer.let_it(Writes::Pass)?;
        for (program, writes) in PROGRAMS {
            let script = format!(
                "#!/bin/sh\n\
                 case \" $* \" in {writes}) case $(cat '{how}') in\n\
                   pass) ;;\n\
                   fail) echo 'the lab lets it fail' >&2; exit 1 ;;\n\
                   *) sleep $(cat '{how}') ;;\n\
                 esac ;; esac\n\
                 exec '{program}' \"$@\"\n",
                how = writer.how().display(),
                program = programs::find(program)?.display(),
            );
            let path = directory.join(program);
            fs::write(&path, script).with_context(|| format!("{} was not written", path.display()))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .with_context(|| path.display().to_string())?;
        }
        Ok(writer)
    }

    /// What becomes of the writes that begin from now on.
    ///
    /// # Errors
    ///
    /// When the lab's file for it cannot be written.
    pub fn let_it(&self, writes: Writes) -> Result<()> {
        let text = match writes {
            Writes::Pass => "pass".to_owned(),
            Writes::Late(by) => by.as_secs_f64().to_string(),
            Writes::Fail => "fail".to_owned(),
        };
        // Whole at any moment, as a program may read it now.
        let new = self.directory.join("how.new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, self.how())).context("how rules are written was not set")
    }

    /// Where kube-proxy is to look for its programs first.
    pub(super) fn search_path(&self, rest: &str) -> String {
        format!("{}:{rest}", self.directory.display())
    }

    fn how(&self) -> PathBuf {
        self.directory.join("how")
    }
}
