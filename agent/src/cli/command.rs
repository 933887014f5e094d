//! The command line as clap sees it. The flags of `run` and `check` are the configuration's keys.

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::PathBufValueParser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{drain, exit, inject::choices::SECURITY, key_help};
use crate::config::{Arguments, FILE_VARIABLE, keys, nearest};

/// `lastsyn` and everything below it.
pub fn command() -> Command {
    Command::new("lastsyn")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Holds a Kubernetes preStop hook exactly until the last new connection has arrived")
        .after_help(exit::HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(configured(
            Command::new("run")
                .about("The sidecar: counts new connections and answers the hook")
                .after_help(exit::HELP),
        ))
        .subcommand(drain_command())
        .subcommand(
            Command::new("install")
                .about("Copies this program into a directory, for the exec hook of a container that does not have it")
                .after_help(exit::HELP)
                .arg(
                    Arg::new("directory")
                        .value_name("DIR")
                        .required(true)
                        .value_parser(PathBufValueParser::new())
                        .help("The directory, a volume that both containers mount; it has to exist"),
                ),
        )
        .subcommand(
            Command::new("status")
                .about("One look at the agent: listeners, sensor, drain, last verdict; or a screen that shows them live")
                .after_help(exit::HELP)
                .arg(json("Print the agent's answer as it came"))
                .arg(Arg::new("watch").long("watch").action(ArgAction::SetTrue).help(
                    "Look again every second, until it is ended: on a terminal as a screen, with --json an answer a line",
                ))
                .arg(agent()),
        )
        .subcommand(report_command())
        .subcommand(inject_command())
        .subcommand(configured(
            Command::new("fence")
                .about("The cluster's fence: writes markers, sees them take effect on every node, and answers agents")
                .after_help(exit::HELP)
                .args_conflicts_with_subcommands(true)
                .subcommand(
                    Command::new("status")
                        .about("Which node's kube-proxy is late: what each has shown, and how long that took")
                        .after_help(exit::HELP)
                        .arg(json("Print the fence's answer as it came"))
                        .arg(
                            Arg::new("fence")
                                .long("fence")
                                .value_name("URL")
                                .help("Where the fence is [default: http://localhost:19481]"),
                        ),
                ),
        ))
        .subcommand(configured(
            Command::new("check")
                .about("Looks whether the agent can work here, and says what to do where it cannot")
                .after_help(exit::HELP),
        ))
}

/// Reads a command line, program name first. Unknown flags are answered with the nearest known one.
///
/// # Errors
/// Wrong arguments; also the texts of `--help` and `--version`, as clap has it.
pub(super) fn read(arguments: &[std::ffi::OsString]) -> Result<ArgMatches, clap::Error> {
    let mut command = command();
    command.try_get_matches_from_mut(arguments).map_err(|mut error| {
        if let (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) =
            (error.kind(), error.get(ContextKind::InvalidArg))
        {
            let given = arguments.get(1).and_then(|name| name.to_str()).unwrap_or_default();
            let command = command.find_subcommand(given).unwrap_or(&command);
            let flags = command.get_arguments().filter_map(Arg::get_long);
            if let Some(meant) = nearest(unknown.trim_start_matches('-'), flags) {
                let meant = ContextValue::String(format!("--{meant}"));
                error.insert(ContextKind::SuggestedArg, meant);
            }
        }
        error
    })
}

/// What a command line of `run` or `check` says about the configuration.
pub(super) fn configuration(matches: &ArgMatches) -> Arguments {
    let value = |flag: &str| matches.get_one::<String>(flag).map(|value| (flag.to_owned(), value.clone()));
    Arguments {
        file: matches.get_one("config").cloned(),
        values: keys().iter().filter_map(|key| value(key.flag())).collect(),
    }
}

fn configured(command: Command) -> Command {
    let file = Arg::new("config")
        .long("config")
        .value_name("PATH")
        .value_parser(PathBufValueParser::new())
        .help(format!("The configuration, a YAML file [env: {FILE_VARIABLE}]"));
    command.arg(file).next_help_heading("Configuration, above file and environment").args(keys().iter().map(|key| {
        let help = key_help::HELP.iter().find(|(name, _)| *name == key.name()).map_or("", |(_, help)| help);
        Arg::new(key.flag())
            .long(key.flag())
            .value_name("VALUE")
            // A negative duration deserves its own message.
            .allow_hyphen_values(true)
            .help(format!("{help} [default: {}] [env: {}]", key.default(), key.variable()))
    }))
}

/// For its help only: [`drain::Hook::read`] reads the hook's arguments, as a hook that is refused lets the pod go.
fn drain_command() -> Command {
    Command::new("drain")
        .about("The exec hook: waits for the agent's verdict, and whatever becomes of the agent, to its own bound")
        .long_about(
            "The exec hook: asks the agent to drain and waits for its verdict. Where no agent can be reached, or its \
             answer is no verdict, the hook asks again and holds to its own bound: a fault never makes a drain \
             shorter. For the same reason a wrong argument is reported, but the hook holds before it ends with code 2.",
        )
        .after_help(exit::HELP)
        .arg(
            Arg::new("max-wait")
                .long("max-wait")
                .value_name("DURATION")
                .help(format!("The hook's own bound, from its own start [default: {}]", drain::DEFAULT_BOUND_TEXT)),
        )
        .arg(Arg::new("mark").long("mark").action(ArgAction::SetTrue).help(
            "The agent's own preStop hook: says that the pod is terminating, and returns at once. In a hook of the server's \
             container it would hold nothing",
        ))
        .arg(json("Print the verdict as one line of JSON"))
        .arg(
            Arg::new("strict")
                .long("strict")
                .action(ArgAction::SetTrue)
                .help("End with 3 where the bound was reached, with 4 where no agent was; it holds just as long"),
        )
        .arg(agent())
}

fn report_command() -> Command {
    let path = PathBufValueParser::new;
    Command::new("report")
        .about("What came of a drain, as text or as a page: read from the agent's log, or from GET /v1/report")
        .after_help(exit::HELP)
        .arg(Arg::new("file").value_name("FILE").required(true).value_parser(path()).help(
            "A log that the agent's lines are in, as kubectl logs, a node or a log store has it, or a report; - for standard \
             input. The last drain's report is taken",
        ))
        .arg(Arg::new("html").long("html").value_name("OUT").value_parser(path()).help(
            "Write one page that needs nothing else, with graphics and the tables of their numbers; - for standard output",
        ))
        .arg(
            Arg::new("all")
                .long("all")
                .action(ArgAction::SetTrue)
                .conflicts_with("html")
                .help("Show every drain that the file tells of"),
        )
}

fn inject_command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("inject")
        .about("Puts the agent, the hook and their rights into a workload's manifest: standard input to standard output")
        .after_help(exit::HELP)
        .arg(Arg::new("workload").value_name("KIND/NAME").help(
            "The Deployment, DaemonSet or StatefulSet, such as deployment/web; may be left out where there is one alone",
        ))
        .arg(
            text("image", "IMAGE", "The agent's image")
                .default_value(concat!("lastsyn:", env!("CARGO_PKG_VERSION"))),
        )
        .arg(
            text("mode", "MODE", "An init container that keeps running (Kubernetes 1.29), or one beside the server")
                .value_parser(["native", "container"])
                .default_value("native"),
        )
        .arg(
            text("security", "VARIANT", "What the agent's container may do")
                .value_parser(SECURITY)
                .default_value("bpf"),
        )
        .arg(text("max-wait", "DURATION", "The longest drain").default_value("20s"))
        .arg(text(
            "stop-reserve",
            "DURATION",
            "What the server has left of the grace period to stop [default: the workload's own grace period, or 10s]",
        ))
        .arg(
            text("container", "NAME", "The container that gets the hook; may be given several times [default: the first \
                 that has ports]")
                .action(ArgAction::Append),
        )
        .arg(flag("all-containers", "Give the hook to every container that has ports"))
        .arg(flag("replace-hook", "Put the hook in the place of one that is there"))
        .arg(flag("keep-probes", "Leave readiness probes as they are: the agent does not fail them"))
        .arg(text(
            "service-account",
            "NAME",
            "The pods' own ServiceAccount, which stays [default: one for the agent, which is made with its rights]",
        ))
        .arg(text("namespace", "NAME", "Where the pods will be, if their manifest does not say [default: default]"))
}

fn json(help: &'static str) -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help(help)
}

fn agent() -> Arg {
    Arg::new("agent").long("agent").value_name("ADDRESS:PORT|unix:PATH").action(ArgAction::Append).help(
        "Where the agent answers; may be given several times [default: port 19480, or LASTSYN_SERVER_ADDRESS's, on \
         127.0.0.1 and [::1], then unix:/run/lastsyn/hook.sock or LASTSYN_SERVER_SOCKET]",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn the_help_shows_every_key_with_default_and_variable() {
        let mut command = command();
        let help = command.find_subcommand_mut("run").expect("run").render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for key in keys() {
            assert!(help.contains(&format!("--{} <VALUE>", key.flag())), "{}", key.flag());
            let origin = format!("[default: {}] [env: {}]", key.default(), key.variable());
            assert!(help.contains(&origin), "{origin}");
        }
        assert!(help.contains("Exit codes: 0 done"));
    }

    #[test]
    fn flags_become_settings() {
        let read = |arguments: &[&str]| read(&arguments.iter().map(Into::into).collect::<Vec<_>>());
        let matches =
            read(&["lastsyn", "run", "--config", "/f", "--drain.min-wait", "-2s", "--listeners.watch=80,443"]);
        let matches = matches.expect("valid");
        let (_, run) = matches.subcommand().expect("run");
        let arguments = configuration(run);
        assert_eq!(arguments.file, Some("/f".into()));
        let values = [("drain.min-wait", "-2s"), ("listeners.watch", "80,443")];
        assert_eq!(arguments.values, values.map(|(flag, value)| (flag.to_owned(), value.to_owned())));

        let error = read(&["lastsyn", "check", "--quiet-period", "2s"]).expect_err("unknown").to_string();
        assert!(error.contains("--drain.quiet-period"), "{error}");
    }
}
