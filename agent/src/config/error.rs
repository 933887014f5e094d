//! Every mistake that a configuration can hold, one variant each. The message says what is wrong, where it was said, and
//! what to write instead.

use std::{io, path::PathBuf};

use lastsyn_common::counters::{MOST_IGNORED, MOST_PROBED};

use super::{
    duration::format,
    file::LARGEST,
    model::DEFAULT_GRACE,
    origin::{FileOrigin, Origin, Setting},
};
use crate::core::listener::Port;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are what the message shows")]
pub enum ConfigError {
    /// The file cannot be opened or read.
    #[error("cannot read the configuration file {} (named by {named_by}): {error}", path.display())]
    Unreadable {
        path: PathBuf,
        named_by: FileOrigin,
        #[source]
        error: io::Error,
    },
    /// The file is larger than 1 MiB.
    #[error("the configuration file {} has more than {LARGEST} bytes: is it the right file?", path.display())]
    TooLarge { path: PathBuf },
    /// The file is not text.
    #[error("the configuration file {} is not UTF-8 from byte {at} on: is it the right file?", path.display())]
    NotUtf8 { path: PathBuf, at: usize },
    /// The file is not YAML.
    #[error("{}:{line}:{column}: {why}", path.display())]
    Syntax { path: PathBuf, line: u64, column: u64, why: String },
    /// The file is YAML, but a list or a single value.
    #[error("{} is not a mapping of sections; it should look like `drain: {{ quietPeriod: 2s }}`", path.display())]
    NotAMapping { path: PathBuf },
    /// A section has a value instead of keys.
    #[error("{key} ({origin}) is a section; give its keys: {inside}")]
    NotASection { key: String, origin: Origin, inside: String },
    /// No such key, variable or flag.
    #[error("unknown key {key} ({origin}); did you mean {nearest}?")]
    UnknownKey { key: String, origin: Origin, nearest: String },
    /// A variable of the agent's holds something that is no text.
    #[error("the value of the environment variable {name} is not UTF-8")]
    VariableNotUtf8 { name: String },
    /// A value that is wrong by itself: type, unit, range.
    #[error("{setting}: {why}")]
    Value { setting: Box<Setting>, why: String },
    /// A port twice in one list.
    #[error("{setting}: port {port} is there twice; take one out")]
    DuplicatePort { setting: Box<Setting>, port: Port },
    /// More networks of one family than the kernel's map holds.
    #[error(
        "{setting}: {count} networks of one family are more than the {MOST_IGNORED} that can be ignored; join some"
    )]
    TooManyNetworks { setting: Box<Setting>, count: usize },
    /// More probed ports than the kernel's map holds.
    #[error(
        "{setting}: {count} ports are more than the {MOST_PROBED} at which probes can be told; name the watched ones"
    )]
    TooManyProbed { setting: Box<Setting>, count: usize },
    /// A port in both lists.
    #[error("port {port} is watched by {watch} and excluded by {exclude}; take it out of one")]
    WatchedAndExcluded { port: Port, watch: Box<Setting>, exclude: Box<Setting> },
    /// The agent's own port among the watched ones.
    #[error(
        "{setting}: port {port} is the agent's own, by {server}: whoever looks at the agent would hold the drain, and its \
         own listener would keep it; take it out, or change the one"
    )]
    OwnPortWatched { setting: Box<Setting>, port: Port, server: Box<Setting> },
    /// An empty list of watched ports.
    #[error("{setting}: nothing would be watched; give the ports, or auto")]
    NothingWatched { setting: Box<Setting> },
    /// A block of a server that `proxy.kind` does not name.
    #[error("{setting} is for proxy.kind: {block}, but {kind}: take the one out, or set the other")]
    OtherProxy { setting: Box<Setting>, block: &'static str, kind: Box<Setting> },
    /// `kind: http` without a request.
    #[error("{kind} needs at least one request: proxy.http.announce or proxy.http.failReadiness")]
    NoRequest { kind: Box<Setting> },
    /// A watched port is the server's admin port.
    #[error(
        "{setting}: port {port} is the admin port of the server in the pod, by {admin}: it is not for clients; take it \
         out, or change the one"
    )]
    AdminPortWatched { setting: Box<Setting>, port: Port, admin: Box<Setting> },
    /// A name for `/ready/NAME` that is none.
    #[error(
        "{setting}: {name:?} is no name; use at most 63 lower-case letters, digits and dashes, as in \
         `upstream: {{ web: http://127.0.0.1:8080/ready }}`"
    )]
    UpstreamName { setting: Box<Setting>, name: String },
    /// The agent asking itself.
    #[error("{setting}: {name} leads to the agent itself, by {server}; give the URL of the server's own readiness")]
    UpstreamIsAgent { setting: Box<Setting>, name: String, server: Box<Setting> },
    /// A quiet period of zero.
    #[error(
        "{setting}: nothing can be observed in no time; give at least as long as a usual pause between connections"
    )]
    QuietPeriodZero { setting: Box<Setting> },
    /// `routing.source: fence` without a fence.
    #[error(
        "{setting}: there is no fence to ask; give routing.fence, such as http://lastsyn-fence.lastsyn-system:19481"
    )]
    NoFence { setting: Box<Setting> },
    /// Nothing, where something has to be.
    #[error("{setting}: it has to be more than nothing; leave it out for the default")]
    Zero { setting: Box<Setting> },
    /// `quietPeriod` above the bound.
    #[error("{quiet} is longer than {bound}: every drain would end at its bound; lower the one or raise the other")]
    QuietPeriodAboveMaxWait { quiet: Box<Setting>, bound: Box<Setting> },
    /// `minWait` above the bound.
    #[error("{floor} is longer than {bound}: every drain would end at its bound; lower the one or raise the other")]
    MinWaitAboveMaxWait { floor: Box<Setting>, bound: Box<Setting> },
    /// `maxWait: auto` with nothing left for it.
    #[error(
        "{reserve} leaves no time to drain, as maxWait: auto is the grace period of {} less that; \
         give drain.maxWait where the pod's terminationGracePeriodSeconds is longer",
        format(DEFAULT_GRACE)
    )]
    NothingLeft { reserve: Box<Setting> },
}
