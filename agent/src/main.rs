//! The binary: hands the command line to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    lastsyn::cli::main(&arguments).into()
}
