//! The command line: one file per subcommand.

mod check;
mod command;
mod drain;
pub mod exit;
mod fence;
mod inject;
mod install;
mod key_help;
mod output;
mod report;
mod run;
mod status;
pub mod words;

use std::ffi::OsString;

use clap::ArgMatches;
use tokio::time::Instant;

pub use self::command::command;
use self::{exit::Exit, output::remark};
use crate::config::{self, Config};

/// Carries out a command line, program name first.
pub fn main(arguments: &[OsString]) -> Exit {
    let start = Instant::now();
    if let Some(hook) = hook_arguments(arguments) {
        return drain::main(&hook, start);
    }
    let matches = match command::read(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            // Nobody reads it: nothing else depends on it.
            drop(error.print());
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    match matches.subcommand() {
        Some(("run", matches)) => configured(matches, run::main),
        Some(("fence", matches)) => match fence::is_status(matches) {
            Some(status) => fence::status(status),
            None => configured(matches, fence::main),
        },
        Some(("check", matches)) => configured(matches, |config| check::main(&config)),
        Some(("status", matches)) => status::main(matches),
        Some(("report", matches)) => report::main(matches),
        Some(("install", matches)) => install::main(matches),
        Some(("inject", matches)) => inject::main(matches),
        _ => Exit::Usage,
    }
}

/// The arguments of `drain`, those in front of the word included: the hook is recognised before anything is refused,
/// also where a flag's value stands before it.
fn hook_arguments(arguments: &[OsString]) -> Option<Vec<String>> {
    let own: Vec<String> = arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let command = command();
    let at = own.iter().position(|argument| {
        argument == "help" || command.get_subcommands().any(|subcommand| subcommand.get_name() == argument)
    })?;
    (own.get(at)? == "drain")
        .then(|| own.into_iter().enumerate().filter(|(place, _)| *place != at).map(|(_, argument)| argument).collect())
}

fn configured(matches: &ArgMatches, work: fn(Config) -> Exit) -> Exit {
    match config::load(&command::configuration(matches), config::variables()) {
        Ok(config) => work(config),
        Err(error) => {
            remark(format_args!("configuration: {error}"));
            Exit::Usage
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hook_is_recognised_before_anything_is_refused() {
        let hook = |arguments: &[&str]| hook_arguments(&arguments.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(hook(&["lastsyn", "drain"]), Some(vec![]));
        assert_eq!(hook(&["lastsyn", "--strict", "drain", "--json"]), Some(vec!["--strict".into(), "--json".into()]));
        assert_eq!(
            hook(&["lastsyn", "--max-wait", "20s", "drain"]),
            Some(vec!["--max-wait".into(), "20s".into()]),
            "a value in front of the word"
        );
        assert_eq!(hook(&["lastsyn", "status", "drain"]), None);
        assert_eq!(hook(&["lastsyn", "install", "drain"]), None);
        assert_eq!(hook(&["lastsyn", "help", "drain"]), None);
        assert_eq!(hook(&["lastsyn"]), None);
        assert_eq!(hook(&["lastsyn", "--version"]), None);
    }
}
