//! Writes the shells' completions of `lastsyn` into a directory, for `cargo xtask dist`.

use std::{env, fs, path::PathBuf};

use anyhow::{Context, Result};
use clap_complete::{Shell, generate_to};

fn main() -> Result<()> {
    let directory: PathBuf = env::args_os().nth(1).context("into which directory?")?.into();
    fs::create_dir_all(&directory).with_context(|| format!("{} was not made", directory.display()))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut lastsyn::cli::command(), "lastsyn", &directory)
            .with_context(|| format!("no completion for {shell}"))?;
    }
    Ok(())
}
