//! Running other programs: what they print goes to standard error, and a failure names the whole command.

use std::{
    io,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, bail};

/// Runs a command to its end. Its standard output joins standard error: a verb's own standard output is for results.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdout(Stdio::from(io::stderr()))
        .status()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a command to its end and leaves its standard output where the verb's goes: for results that a caller reads.
pub(crate) fn run_for_result(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a command and returns its standard output without the last line's end.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status}): {}", line(command), String::from_utf8_lossy(&stderr).trim_end());
    }
    let text = String::from_utf8(stdout).with_context(|| format!("`{}` printed what is not UTF-8", line(command)))?;
    Ok(text.trim_end().to_owned())
}

/// Where the shell would find a program; `None` when it would not.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    // Administrators' programs are here on Debian, and not on an ordinary user's path.
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = read(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("no such luck") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_not_found() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("no-program-has-this-name"), None);
    }
}
