//! Becomes another program, in whose eyes the kernel has no TCX: `without_tcx PROGRAM [ARGUMENT]...`.
//!
//! A kernel without TCX does not know the attach type, and refuses the link with EINVAL (`bpf_link_create` in
//! `kernel/bpf/syscall.c`). A system call filter sees the command, not the attach type behind a pointer, so it refuses
//! every link; the agent makes no others.

use std::{env, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// `BPF_LINK_CREATE` in `linux/bpf.h`.
const LINK_CREATE: u64 = 28;

fn main() -> Result<()> {
    let command_is_link_create = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, LINK_CREATE)?;
    let filter: BpfProgram = SeccompFilter::new(
        [(libc::SYS_bpf, vec![SeccompRule::new(vec![command_is_link_create])?])].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EINVAL.cast_unsigned()),
        env::consts::ARCH.try_into()?,
    )?
    .try_into()?;
    seccompiler::apply_filter(&filter)?;
    let mut arguments = env::args_os().skip(1);
    let program = arguments.next().context("no program was named")?;
    Err(Command::new(&program).args(arguments).exec()).with_context(|| format!("{} did not start", program.display()))
}
