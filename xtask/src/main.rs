//! What developers and CI do with this repository: `cargo xtask VERB`.

mod build_ebpf;
mod nightly;
mod object;
mod process;
mod setup;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Compile the kernel programs and write them, with their manifest, to ebpf/object
    BuildEbpf,
}

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    let root = workspace::root()?;
    match verb {
        Verb::BuildEbpf => build_ebpf::run(&root),
    }
}
