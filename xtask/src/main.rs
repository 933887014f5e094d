//! What developers and CI do with this repository: `cargo xtask VERB`.

mod bench;
mod build_ebpf;
mod check_ebpf;
mod coverage;
mod demo;
mod disk_space;
mod dist;
mod lab;
mod lab_program;
mod lint;
mod model;
mod mutate;
mod nightly;
mod object;
mod process;
mod prove;
mod release;
mod setup;
mod shadow;
mod simulate;
mod test;
#[cfg(test)]
mod workflows;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Get every tool that is missing; safe to run again
    Setup(setup::Choice),
    /// Compile the kernel programs and write them, with their manifest, to ebpf/object
    BuildEbpf,
    /// Fail when ebpf/object is not what the sources of the kernel programs say
    CheckEbpf {
        /// Fail also where the object cannot be compared with a rebuild
        #[arg(long)]
        require_rebuild: bool,
    },
    /// Check formatting, clippy on both targets, documentation, the length of files, and dependencies
    Lint,
    /// Do what CI does: setup, lint, check-ebpf, build, test
    Test {
        /// Fail also where the object cannot be compared with a rebuild
        #[arg(long)]
        require_rebuild: bool,
        /// Arguments for `cargo test`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Hold a real drain on this machine and show it
    Demo {
        /// Run the release build
        #[arg(long)]
        release: bool,
        /// Arguments for the demonstration: `--scenario NAME`, `--json`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Make what is handed out: the static program, its image, completions, a bill of materials, and their digests
    Dist(dist::Choice),
    /// Check that this can become a version, and tell each step to it
    Release(release::Choice),
    /// Keep a real Kubernetes up on this machine: `up`, `down`, `status`, `run COMMAND`
    Lab {
        /// Arguments for the lab: a verb, `--name NAME`, `--mode nftables|iptables`
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Search every way round the rules of the decision in a bounded world, and show what was found
    Model {
        /// Search larger worlds: minutes, with an optimised build
        #[arg(long)]
        deep: bool,
        /// Print the cases as JSON, one a line
        #[arg(long)]
        json: bool,
    },
    /// Tell which lines and regions of the core its own tests reach
    Coverage,
    /// Break the decision core in every small way, and show which breakages no test notices
    Mutate(mutate::Choice),
    /// Show one promise with full numbers, on the release build
    Prove {
        /// The promise's name and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Play drains by the thousand in a simulated cluster, or tell one: `--scenario X --seed N`
    Simulate {
        /// Arguments for the simulator: `--scenario NAME`, `--seed N`, `--drains M`, `--jobs N`, `--rule seed`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure the release build: what is fast, or what is named
    Bench {
        /// The benchmark's name
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
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
    let rebuild = |required| if required { check_ebpf::Rebuild::Required } else { check_ebpf::Rebuild::WherePossible };
    match verb {
        Verb::Setup(choice) => setup::run(&choice),
        Verb::BuildEbpf => build_ebpf::run(&root),
        Verb::CheckEbpf { require_rebuild } => check_ebpf::run(&root, rebuild(require_rebuild)),
        Verb::Lint => lint::run(&root),
        Verb::Test { require_rebuild, arguments } => test::run(&root, rebuild(require_rebuild), &arguments),
        Verb::Demo { release, arguments } => {
            let profile = if release { lab_program::Profile::Release } else { lab_program::Profile::Debug };
            demo::run(&root, profile, &arguments)
        }
        Verb::Dist(choice) => dist::run(&root, &choice),
        Verb::Release(choice) => release::run(&root, &choice),
        Verb::Lab { arguments } => lab::run(&root, &arguments),
        Verb::Model { deep, json } => model::run(&root, deep, json),
        Verb::Coverage => coverage::run(&root),
        Verb::Mutate(choice) => mutate::run(&root, &choice),
        Verb::Prove { arguments } => prove::run(&root, &arguments),
        Verb::Simulate { arguments } => simulate::run(&root, &arguments),
        Verb::Bench { arguments } => bench::run(&root, &arguments),
    }
}
