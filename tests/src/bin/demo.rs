//! `cargo xtask demo`: a real drain on this machine, shown.

use std::process::ExitCode;

use clap::Parser;
use lastsyn_tests::demo::{Conclusion, Options, run};

/// Holds a real drain on this machine and shows it. Ends with 0 when what was expected came about, else with 1; with
/// 130 when it was interrupted.
#[derive(Parser)]
#[command(name = "demo", bin_name = "cargo xtask demo")]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let Arguments { options } = Arguments::parse();
    match run(&options) {
        Ok(Conclusion::AsExpected) => ExitCode::SUCCESS,
        Ok(Conclusion::Otherwise) => ExitCode::FAILURE,
        Ok(Conclusion::Interrupted) => {
            eprintln!("interrupted: hosts, servers and agent of the demonstration are gone");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
