//! `lastsyn status`: one look at the agent, or a screen that is drawn again every second.

mod screen;
mod watch;

use std::time::Duration;

use clap::ArgMatches;
use hyper::{Method, StatusCode};

use super::{
    exit::Exit,
    output::{remark, result},
    words,
};
use crate::{
    client::{self, BadCandidate, Candidate, Connection, Request},
    config::variables,
    core::{
        class::Class,
        verdict::{Source, Sources},
    },
    server::status::{State, Status},
};

/// An agent that takes longer has stopped.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn main(matches: &ArgMatches) -> Exit {
    let named = matches.get_many::<String>("agent").unwrap_or_default();
    let agents: Result<Vec<Candidate>, BadCandidate> = named.map(|text| text.parse()).collect();
    let agents = match agents {
        Ok(agents) if agents.is_empty() => {
            let (candidates, complaints) = client::usual(variables());
            for complaint in complaints {
                remark(format_args!("status: {complaint}"));
            }
            candidates
        }
        Ok(agents) => agents,
        Err(error) => {
            remark(format_args!("status: --agent: {error}"));
            return Exit::Usage;
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            remark(format_args!("status: cannot begin: {error}"));
            return Exit::Failed;
        }
    };
    if matches.get_flag("watch") {
        return runtime.block_on(watch::run(&agents, matches.get_flag("json")));
    }
    match runtime.block_on(look(&agents)) {
        Ok(body) if matches.get_flag("json") => {
            result(body.trim_end());
            Exit::Done
        }
        Ok(body) => match serde_json::from_str::<Status>(&body) {
            Ok(status) => {
                result(render(&status).trim_end());
                Exit::Done
            }
            Err(error) => {
                remark(format_args!(
                    "status: the agent's answer is not a status that this version knows ({error}); --json shows it"
                ));
                Exit::Failed
            }
        },
        Err(failures) => {
            remark(format_args!("status: no agent answers here ({failures}); is it running in this pod?"));
            Exit::Failed
        }
    }
}

/// The first answer, or what went wrong everywhere.
async fn look(agents: &[Candidate]) -> Result<String, String> {
    let mut failures = Vec::new();
    for agent in agents {
        match ask(agent).await {
            Ok(body) => return Ok(body),
            Err(failure) => failures.push(format!("{agent}: {failure}")),
        }
    }
    Err(failures.join("; "))
}

/// Asks one place for its status.
pub(super) async fn ask(agent: &Candidate) -> Result<String, String> {
    let connection = Connection::open(agent).await.map_err(|error| error.to_string())?;
    let request = Request::new(Method::GET, "/v1/status");
    match tokio::time::timeout(ANSWER_TIMEOUT, connection.ask(&request)).await {
        Ok(Ok(answer)) if answer.status == StatusCode::OK => Ok(String::from_utf8_lossy(&answer.body).into_owned()),
        Ok(Ok(answer)) => Err(format!("answered {}", answer.status)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_elapsed) => Err(format!("connected, but no answer within {} s", ANSWER_TIMEOUT.as_secs())),
    }
}

fn render(status: &Status) -> String {
    let state = match status.state {
        State::Serving => "serving",
        State::Draining => "draining",
        State::Ended => "drain ended",
    };
    let sees = match (status.sensor.healthy, status.sensor.scoped, status.sensor.strategy.sees_closed_ports()) {
        (false, _, _) => "not known to see everything",
        (true, false, _) => "unscoped: does not tell the pod's SYNs from others of the node",
        (true, true, false) => "sees everything that meets a listener",
        (true, true, true) => "sees everything",
    };
    let why = status.sensor.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let interfaces = match status.sensor.interfaces.as_slice() {
        [] => String::new(),
        interfaces => format!(", on {}", interfaces.join(", ")),
    };
    let blind = match status.sensor.blind_ms {
        None | Some(0) => String::new(),
        Some(blind) => format!(", {} in all during which an interface may have been without it", words::seconds(blind)),
    };
    let mut lines = vec![
        format!("agent    {}, {state}, up {}", status.version, words::seconds(status.uptime_ms)),
        format!("sensor   {}, {sees}{why}{interfaces}{blind}", status.sensor.strategy.name()),
    ];
    let passed_over = status.sensor.passed_over.iter();
    if !status.sensor.probes.ports.is_empty() {
        lines.push(format!("         kubelet's probes {}", status.sensor.probes.words()));
    }
    lines.extend(passed_over.map(|passed| format!("         not {}: {}", passed.strategy.name(), passed.why)));
    lines.push(match &status.drain {
        None => format!("drain    none under way, {} ended", status.drains_ended),
        Some(drain) => {
            let held = match drain.holding.as_slice() {
                [] => "held by nothing".to_owned(),
                holding => format!("held by {}", words::holding(holding)),
            };
            let callers = if drain.callers == 1 { "caller" } else { "callers" };
            format!(
                "drain    {} of at most {}, {} {callers}, {held}",
                words::seconds(drain.elapsed_ms),
                words::seconds(drain.max_wait_ms),
                drain.callers
            )
        }
    });
    if let Some(drain) = &status.drain {
        lines.extend(screen::conditions(drain).into_iter().map(|(_, line)| format!("         {line}")));
    }
    if let Some(sources) = &status.sources {
        lines.extend(self::sources(sources));
    }
    lines.push(match &status.verdict {
        None => "verdict  none yet".to_owned(),
        Some(verdict) => format!("verdict  {}", words::verdict(verdict)),
    });
    lines.push(String::new());
    lines.extend(aligned(&listeners(status)));
    lines.join("\n")
}

/// Who sends attempts in the drain under way, the newest first.
fn sources(sources: &Sources) -> Vec<String> {
    let heads = ["sources"].into_iter().chain(std::iter::repeat(""));
    who(sources).into_iter().zip(heads).map(|(line, head)| format!("{head:9}{line}")).collect()
}

/// The same, a line each.
fn who(sources: &Sources) -> Vec<String> {
    let line = |source: &Source| {
        let since = source.since_withdrawal.map_or_else(String::new, |since| format!(", {since} since the withdrawal"));
        let (who, ago) = (words::source(source), words::seconds(source.last_ago_ms));
        format!("{who} to port {} over {}: {}{since}, the last {ago} ago", source.port, source.family, source.attempts)
    };
    let mut lines: Vec<_> = sources.list.iter().map(line).collect();
    if lines.is_empty() {
        lines.push("nobody so far".to_owned());
    }
    if sources.more > 0 {
        lines.push(format!("and {} more", sources.more));
    }
    if sources.forgotten > 0 {
        lines.push(format!("{} were forgotten, as more came than are kept", sources.forgotten));
    }
    lines
}

/// The classes in the order of their columns: those that count first.
const CLASSES: [Class; 8] = [
    Class::New,
    Class::Retransmit,
    Class::Refused,
    Class::Join,
    Class::Opaque,
    Class::Stray,
    Class::Probe,
    Class::Ignored,
];

fn listeners(status: &Status) -> Vec<Vec<String>> {
    let classes = CLASSES.map(|class| class.name().to_uppercase());
    let headings = ["PORT", "FAMILY"].map(str::to_owned).into_iter().chain(classes);
    let mut rows = vec![headings.chain(["LAST ATTEMPT", "QUIET"].map(str::to_owned)).collect::<Vec<_>>()];
    for listener in &status.listeners {
        let closed = if listener.closed_at_ms.is_some() { " closed" } else { "" };
        for counts in &listener.families {
            let ago = counts.last_attempt_ago_ms;
            let ago = ago.map_or_else(|| "never".to_owned(), |ago| format!("{} ago", words::seconds(ago)));
            let quiet = if counts.quiet { "yes" } else { "no" }.to_owned();
            let who = [format!("{}{closed}", listener.port), counts.family.to_string()];
            let classes = CLASSES.map(|class| counted(counts.count(class)));
            rows.push(who.into_iter().chain(classes).chain([ago, quiet]).collect());
        }
    }
    rows
}

/// A count, or that there is none.
fn counted(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// Columns as wide as their widest cell, two spaces apart.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
