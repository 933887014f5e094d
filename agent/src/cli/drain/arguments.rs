//! The hook's arguments, read so that a mistake in one does not lose the others. Nothing here refuses: a hook that ends
//! at once lets kubelet stop the server at once, so a mistake is reported and the hook holds all the same.

use std::time::Duration;

use crate::{
    client::Candidate,
    config::{DurationError, nearest, parse_duration},
};

/// The bound where none is given: less than Kubernetes' default grace period of 30 s, and more than the agent's own
/// bound, so that the agent's verdict comes first.
pub(super) const DEFAULT_BOUND: Duration = Duration::from_secs(25);

/// [`DEFAULT_BOUND`] for the help.
pub(in crate::cli) const DEFAULT_BOUND_TEXT: &str = "25s";

const FLAGS: [&str; 6] = ["max-wait", "mark", "json", "strict", "agent", "help"];

/// What the hook is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(in crate::cli) struct Hook {
    pub(in crate::cli) bound: Duration,
    /// It is the agent's own hook: nothing is held.
    pub(in crate::cli) mark: bool,
    pub(in crate::cli) json: bool,
    pub(in crate::cli) strict: bool,
    /// Empty where none was named.
    pub(in crate::cli) agents: Vec<Candidate>,
    pub(in crate::cli) help: bool,
    /// What is wrong, a sentence each.
    pub(in crate::cli) problems: Vec<String>,
}

impl Hook {
    pub(in crate::cli) fn read(arguments: &[String]) -> Self {
        let mut hook = Self {
            bound: DEFAULT_BOUND,
            mark: false,
            json: false,
            strict: false,
            agents: Vec::new(),
            help: false,
            problems: Vec::new(),
        };
        let mut bounds = Bounds::default();
        let mut rest = arguments.iter().map(String::as_str).peekable();
        while let Some(argument) = rest.next() {
            let (flag, attached) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (argument, None),
            };
            let switch = |problems: &mut Vec<String>| {
                if attached.is_some() {
                    problems.push(format!("{flag} takes no value"));
                }
                true
            };
            match flag {
                "--json" => hook.json = switch(&mut hook.problems),
                // With anything that may mean something else, it holds.
                "--mark" if attached.is_some() => hook.problems.push("--mark takes no value".to_owned()),
                "--mark" => hook.mark = true,
                "--strict" => hook.strict = switch(&mut hook.problems),
                "--help" | "-h" => hook.help = switch(&mut hook.problems),
                "--max-wait" | "--agent" => match attached.or_else(|| rest.next_if(|next| !next.starts_with("--"))) {
                    None => hook.problems.push(format!("{flag} needs a value")),
                    Some(value) if flag == "--agent" => match value.parse() {
                        Ok(agent) => hook.agents.push(agent),
                        Err(error) => hook.problems.push(format!("--agent: {error}")),
                    },
                    Some(value) => bounds.take(value, &mut hook.problems),
                },
                _ => {
                    let meant = nearest(flag.trim_start_matches('-'), FLAGS).unwrap_or("help");
                    hook.problems.push(format!("unknown argument {argument:?}; did you mean --{meant}?"));
                }
            }
        }
        if hook.mark && (bounds.said.is_some() || !hook.problems.is_empty()) {
            hook.mark = false;
            hook.problems.push("--mark holds nothing, and stands alone or beside --agent and --strict".to_owned());
        }
        hook.bound = bounds.chosen();
        hook
    }
}

/// What was said about the bound. The longest that was said plainly counts; a number without a unit can only lengthen.
#[derive(Default)]
struct Bounds {
    said: Option<Duration>,
    guessed: Option<Duration>,
}

impl Bounds {
    fn take(&mut self, value: &str, problems: &mut Vec<String>) {
        match parse_duration(value) {
            Ok(bound) => {
                if self.said.is_some() {
                    problems.push("--max-wait is given more than once; the longest counts".to_owned());
                }
                self.said = self.said.max(Some(bound));
            }
            Err(error) => {
                problems.push(format!("--max-wait: {error}"));
                if let DurationError::Unit(number) = error {
                    self.guessed = self.guessed.max(parse_duration(&format!("{number}s")).ok());
                }
            }
        }
    }

    fn chosen(&self) -> Duration {
        self.said.unwrap_or_else(|| DEFAULT_BOUND.max(self.guessed.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::command, config::format_duration};

    fn read(line: &str) -> Hook {
        Hook::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn reads_what_the_help_shows() {
        let hook = read("--max-wait 1m --json --strict --agent [::1]:7 --agent=unix:/s");
        assert_eq!(hook.problems, [""; 0]);
        assert_eq!((hook.bound, hook.json, hook.strict, hook.agents.len()), (Duration::from_mins(1), true, true, 2));
        assert_eq!(read(""), read("--max-wait=25s"));
        assert_eq!(format_duration(DEFAULT_BOUND), DEFAULT_BOUND_TEXT);

        let shown = command();
        let shown = shown.find_subcommand("drain").expect("drain");
        for flag in shown.get_arguments() {
            let name = flag.get_long().expect("a long flag");
            assert!(FLAGS.contains(&name), "{name}");
            let value = match name {
                "max-wait" => "=1s",
                "agent" => "=[::1]:1",
                _ => "",
            };
            assert_eq!(read(&format!("--{name}{value}")).problems, [""; 0], "{name}");
        }
    }

    #[test]
    fn a_mistake_never_makes_the_hold_shorter() {
        for (line, seconds) in [
            ("--max-wait 10", 25),
            ("--max-wait 90", 90),
            ("--max-wait -5s", 25),
            ("--max-wait soon", 25),
            ("--max-wait", 25),
            ("--max-wait --json", 25),
            ("--max-wait= ", 25),
            ("--max-wat 60s", 25),
            ("--bogus --max-wait 1s", 1),
            ("--max-wait 1s --bogus", 1),
            ("--bogus=1 --max-wait 1s", 1),
            ("--max-wait 1s --max-wait 3s", 3),
            ("--max-wait 3s --max-wait 1s", 3),
            ("--max-wait 1s --max-wait 2", 1),
            ("bogus", 25),
            ("--agent nowhere --max-wait 1s", 1),
            ("--json=yes --max-wait 1s", 1),
            ("--mark --max-wait 3s", 3),
            ("--max-wait 3s --mark", 3),
            ("--mark=no", 25),
            ("--mark --bogus", 25),
            ("--marc", 25),
            ("--mark --max-wait 3", 25),
        ] {
            let hook = read(line);
            assert_eq!(hook.bound, Duration::from_secs(seconds), "{line}");
            assert!(!hook.problems.is_empty() && !hook.mark, "{line}");
        }
        assert!(read("--mark").mark && read("--mark --strict --agent [::1]:7").mark);
        assert!(read("--max-wait --json").json);
        assert!(read("--max-wat 60s").problems[0].contains("did you mean --max-wait?"));
    }

    proptest::proptest! {
        #[test]
        fn takes_any_arguments(arguments in proptest::collection::vec(".{0,12}", 0..6)) {
            let hook = Hook::read(&arguments);
            proptest::prop_assert!(hook.bound == DEFAULT_BOUND || arguments.iter().any(|a| a.contains("max-wait")));
        }
    }
}
