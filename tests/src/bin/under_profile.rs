//! Becomes another program under a seccomp profile as container runtimes read it: `under_profile FILE PROGRAM [ARGUMENT]...`.

use std::{env, fs, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

/// The part of a profile that the one in the chart makes use of (`LinuxSeccomp` of the OCI's runtime specification).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Profile {
    default_action: String,
    default_errno_ret: u32,
    #[expect(dead_code, reason = "this machine's is the one that is tried")]
    architectures: Vec<String>,
    syscalls: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    names: Vec<String>,
    action: String,
}

fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let file = arguments.next().context("no profile was named")?;
    let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let filter = filter(&serde_json::from_str(&text)?)?;
    let mut programs = seccompiler::compile_from_json(filter.to_string().as_bytes(), env::consts::ARCH.try_into()?)?;
    seccompiler::apply_filter(&programs.remove("all").context("no filter")?)?;
    let program = arguments.next().context("no program was named")?;
    Err(Command::new(&program).args(arguments).exec()).with_context(|| format!("{} did not start", program.display()))
}

/// In the words of the library that has the numbers of system calls.
fn filter(profile: &Profile) -> Result<Value> {
    ensure!(profile.default_action == "SCMP_ACT_ERRNO", "{} is not tried here", profile.default_action);
    let mut allowed = Vec::new();
    for rule in &profile.syscalls {
        ensure!(rule.action == "SCMP_ACT_ALLOW", "{} is not tried here", rule.action);
        allowed.extend(rule.names.iter().map(|name| json!({ "syscall": name })));
    }
    Ok(json!({"all": {
        "mismatch_action": {"errno": profile.default_errno_ret}, "match_action": "allow", "filter": allowed,
    }}))
}
