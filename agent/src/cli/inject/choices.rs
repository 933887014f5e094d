//! What the command line chose.

use std::time::Duration;

use clap::ArgMatches;

use crate::config::parse_duration;

/// The kinds of workloads, and what kubectl calls them.
const KINDS: [(&str, &[&str]); 3] = [
    ("Deployment", &["deployment", "deployments", "deploy"]),
    ("DaemonSet", &["daemonset", "daemonsets", "ds"]),
    ("StatefulSet", &["statefulset", "statefulsets", "sts"]),
];

/// The server has to have two seconds: one is the hook's.
const LEAST_RESERVE: Duration = Duration::from_secs(2);

/// What is to be injected, into what.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Choices {
    /// Kind and name; none where there is one workload alone.
    pub(super) workload: Option<(&'static str, String)>,
    pub(super) image: String,
    pub(super) native: bool,
    pub(super) security: &'static str,
    /// Whole seconds.
    pub(super) max_wait: u64,
    /// Whole seconds; none where the workload's own grace period says it.
    pub(super) stop_reserve: Option<u64>,
    pub(super) containers: Vec<String>,
    pub(super) all_containers: bool,
    pub(super) replace_hook: bool,
    pub(super) keep_probes: bool,
    pub(super) account: Option<String>,
    pub(super) namespace: Option<String>,
}

/// The variants of `--security`, as the chart has them.
pub(in crate::cli) const SECURITY: [&str; 4] = ["bpf", "compat", "net-raw", "none"];

/// The kind of a workload by any of its names.
pub(super) fn workload_kind(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    KINDS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(kind, _)| *kind)
}

impl Choices {
    /// # Errors
    /// What is wrong with the command line, as a sentence.
    pub(super) fn read(matches: &ArgMatches) -> Result<Self, String> {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let workload = text("workload").map(|given| named(&given)).transpose()?;
        let max_wait = seconds("--max-wait", &text("max-wait").unwrap_or_default(), Duration::from_secs(1))?;
        let stop_reserve =
            text("stop-reserve").map(|given| seconds("--stop-reserve", &given, LEAST_RESERVE)).transpose()?;
        let security = text("security");
        Ok(Self {
            workload,
            image: text("image").unwrap_or_default(),
            native: text("mode").is_none_or(|mode| mode == "native"),
            security: SECURITY.into_iter().find(|one| security.as_deref() == Some(one)).unwrap_or("bpf"),
            max_wait,
            stop_reserve,
            containers: matches.get_many::<String>("container").into_iter().flatten().cloned().collect(),
            all_containers: matches.get_flag("all-containers"),
            replace_hook: matches.get_flag("replace-hook"),
            keep_probes: matches.get_flag("keep-probes"),
            account: text("service-account"),
            namespace: text("namespace"),
        })
    }
}

fn named(given: &str) -> Result<(&'static str, String), String> {
    match given.split_once('/') {
        Some((kind, name)) if !name.is_empty() => workload_kind(kind)
            .map(|kind| (kind, name.to_owned()))
            .ok_or_else(|| format!("{given}: {kind} is none of deployment, daemonset and statefulset")),
        _ => Err(format!("{given}: name the workload as KIND/NAME, such as deployment/web")),
    }
}

fn seconds(flag: &str, given: &str, least: Duration) -> Result<u64, String> {
    let duration = parse_duration(given).map_err(|error| format!("{flag} = {given}: {error}"))?;
    if duration.subsec_nanos() != 0 || duration < least {
        return Err(format!("{flag} = {given}: it has to be in whole seconds, at least {} s", least.as_secs()));
    }
    Ok(duration.as_secs())
}
