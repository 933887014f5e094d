//! `cargo xtask lab`: a real Kubernetes on this machine that stays up.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
use lastsyn_tests::kubernetes::{
    Mode,
    keep::{self, Kept},
};

/// A real Kubernetes on this machine: three nodes as network namespaces, without kubelets, that stays up until `down`.
#[derive(Parser)]
#[command(name = "lab", bin_name = "cargo xtask lab")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Start a lab and leave it running
    Up {
        /// Several labs may be up side by side
        #[arg(long, default_value = "lab")]
        name: String,
        /// What its kube-proxies write their rules with
        #[arg(long, value_enum, default_value_t = Rules::Nftables)]
        mode: Rules,
    },
    /// Take it down
    Down {
        /// Which one
        #[arg(long, default_value = "lab")]
        name: String,
    },
    /// Show the labs that are up
    Status,
    /// Run a command where the lab's API server is reached, with KUBECONFIG set
    Run {
        /// Which one
        #[arg(long, default_value = "lab")]
        name: String,
        /// The command
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Hold a lab until SIGTERM: what `up` starts
    #[command(hide = true)]
    Hold {
        #[arg(long)]
        name: String,
        #[arg(long, value_enum)]
        mode: Rules,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Rules {
    Nftables,
    Iptables,
}

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Up { name, mode } => show(&keep::up(&name, mode.into())?)?,
        Verb::Down { name } => keep::down(&name)?,
        Verb::Status => keep::all()?.iter().try_for_each(show)?,
        Verb::Run { name, command } => {
            let code = keep::run(&name, &command)?.code().and_then(|code| u8::try_from(code).ok());
            return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
        }
        Verb::Hold { name, mode } => keep::hold(&name, mode.into())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(Kept { name, mode, kubeconfig, namespace, hosts, .. }: &Kept) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{name} is up, in {mode} mode")?;
    writeln!(output, "  KUBECONFIG={kubeconfig}  (in {namespace}: `cargo xtask lab run --name {name} COMMAND`)")?;
    writeln!(output, "  network namespaces: {}", hosts.join(", "))
}

impl From<Rules> for Mode {
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::Nftables => Self::Nftables,
            Rules::Iptables => Self::Iptables,
        }
    }
}
