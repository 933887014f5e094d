//! `cargo xtask test`: what CI runs, with the time of each step.

use std::{
    env,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::{
    check_ebpf::{self, Rebuild},
    disk_space, lint, process, setup, workspace,
};

/// A step that has run.
struct Step {
    name: &'static str,
    took: Duration,
    error: Option<anyhow::Error>,
}

pub(crate) fn run(root: &Path, rebuild: Rebuild, arguments: &[String]) -> Result<()> {
    let mut steps = vec![step("setup", || {
        [root, &env::temp_dir()].into_iter().try_for_each(disk_space::warn)?;
        setup::programs(setup::Purpose::Test)?;
        setup::kubernetes()?;
        setup::kernel_toolchain().map(drop)
    })];
    // Without its tools no other step says anything; otherwise each one tells something of its own.
    if steps.iter().all(|step| step.error.is_none()) {
        steps.push(step("lint", || lint::run(root)));
        steps.push(step("check-ebpf", || check_ebpf::run(root, rebuild)));
        // The lab starts the agent's binary, which `cargo test` alone does not build.
        steps.push(step("build", || process::run(workspace::cargo(root).args(["build", "--locked"]))));
        steps.push(step("test", || {
            process::run_for_result(workspace::cargo(root).args(["test", "--locked", "--no-fail-fast"]).args(arguments))
        }));
    }

    eprintln!();
    for Step { name, took, error } in &steps {
        let outcome = error.as_ref().map_or_else(|| "ok".to_owned(), |error| format!("FAILED: {error:#}"));
        eprintln!("{name:<12}{:>8.1} s  {outcome}", took.as_secs_f64());
    }
    let failed: Vec<_> = steps.iter().filter(|step| step.error.is_some()).map(|step| step.name).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn step(name: &'static str, work: impl FnOnce() -> Result<()>) -> Step {
    eprintln!("=== {name}");
    let begin = now();
    let error = work().err();
    if let Some(error) = &error {
        eprintln!("error: {error:#}");
    }
    Step { name, took: begin.elapsed(), error }
}

#[expect(clippy::disallowed_methods, reason = "times a developer's waiting, not the agent's")]
fn now() -> Instant {
    Instant::now()
}
