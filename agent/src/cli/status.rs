//! `lastsyn status`: one look at the agent.

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
    match look(&agents) {
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
fn look(agents: &[Candidate]) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let mut failures = Vec::new();
    for agent in agents {
        match runtime.block_on(ask(agent)) {
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
    let heads = ["sources"].into_iter().chain(std::iter::repeat(""));
    lines.into_iter().zip(heads).map(|(line, head)| format!("{head:9}{line}")).collect()
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
mod tests {
    use super::*;
    use crate::{
        cli::words::tests::{listener_of, source_of, verdict_of},
        core::verdict::{Condition, Reason, Strategy},
        server::status::{DrainStatus, PassedOver, SensorStatus},
    };

    fn status() -> Status {
        let (why, interfaces) = (None, vec!["lo".to_owned(), "eth0".to_owned()]);
        Status {
            version: "0.1.0".to_owned(),
            uptime_ms: 12_300,
            state: State::Serving,
            sensor: SensorStatus {
                strategy: Strategy::Tcx,
                healthy: true,
                scoped: true,
                why,
                blind_ms: Some(0),
                interfaces,
                passed_over: Vec::new(),
                probes: crate::sensor::ProbeStatus::default(),
            },
            listeners: vec![listener_of(80), listener_of(8443)],
            drain: None,
            sources: None,
            drains_ended: 0,
            verdict: None,
            journal: Vec::new(),
        }
    }

    #[test]
    fn shows_listeners_in_columns() {
        assert_eq!(
            render(&status()),
            "agent    0.1.0, serving, up 12.3 s\n\
             sensor   tcx, sees everything, on lo, eth0\n\
             drain    none under way, 0 ended\n\
             verdict  none yet\n\
             \n\
             PORT  FAMILY  NEW  RETRANSMIT  REFUSED  JOIN  OPAQUE  STRAY  PROBE  IGNORED  LAST ATTEMPT  QUIET\n\
             80    IPv4    12   0           0        0     0       0      -      0        2.004 s ago   yes\n\
             80    IPv6    0    0           0        0     0       0      -      0        never         yes\n\
             8443  IPv4    12   0           0        0     0       0      -      0        2.004 s ago   yes\n\
             8443  IPv6    0    0           0        0     0       0      -      0        never         yes"
        );
    }

    #[test]
    fn shows_who_sends_while_a_drain_runs() {
        let list = vec![source_of("10.0.0.2", Some("b"), Some(14)), source_of("203.0.113.0/24", None, None)];
        let text = render(&Status { sources: Some(Sources { list, more: 3, forgotten: 7 }), ..status() });
        let shown = "\nsources  node b (10.0.0.2) to port 80 over IPv4: 19, 14 since the withdrawal, the last 0.204 s ago\n         \
                     203.0.113.0/24 to port 80 over IPv4: 19, the last 0.204 s ago\n         and 3 more\n         \
                     7 were forgotten, as more came than are kept\nverdict";
        assert!(text.contains(shown), "{text}");
        let nobody = render(&Status { sources: Some(Sources::default()), ..status() });
        assert!(nobody.contains("\nsources  nobody so far\n"), "{nobody}");
    }

    #[test]
    fn what_nothing_counts_is_not_shown_as_none() {
        let mut status = status();
        let mut listener = listener_of(80);
        listener.families.truncate(1);
        (listener.families[0].new, listener.families[0].opaque) = (None, None);
        status.listeners = vec![listener];
        let text = render(&status);
        assert!(text.contains("80    IPv4    -    0           0        0     -"), "{text}");
    }

    #[test]
    fn shows_what_the_sensor_cannot_see_and_what_better_ones_lack() {
        let mut status = status();
        status.sensor.strategy = Strategy::Cgroup;
        assert!(render(&status).contains("cgroup, sees everything that meets a listener"), "{}", render(&status));
        status.sensor.strategy = Strategy::Packet;
        status.sensor.scoped = false;
        let why = "the container lacks BPF".to_owned();
        status.sensor.passed_over = vec![PassedOver { strategy: Strategy::Tcx, why }];
        let text = render(&status);
        assert!(text.contains("packet, unscoped: does not tell the pod's SYNs from others of the node"), "{text}");
        assert!(text.contains("\n         not tcx: the container lacks BPF\n"), "{text}");
    }

    #[test]
    fn shows_what_holds_a_drain_and_how_the_last_one_ended() {
        let drain = DrainStatus {
            started_at: "2026-11-29T20:44:09Z".to_owned(),
            elapsed_ms: 1500,
            max_wait_ms: 20_000,
            callers: 2,
            holding: vec![Condition::Handshakes],
        };
        let mut status = Status { state: State::Draining, drain: Some(drain), ..status() };
        status.verdict = Some(verdict_of(Reason::Quiet));
        status.sensor.healthy = false;
        status.sensor.why = Some("no clsact".to_owned());
        status.sensor.blind_ms = Some(70);
        let text = render(&status);
        assert!(text.contains("drain    1.5 s of at most 20 s, 2 callers, held by handshakes under way\n"), "{text}");
        assert!(text.contains("verdict  quiet after 4.312 s"), "{text}");
        assert!(text.contains("tcx, not known to see everything (no clsact), on lo, eth0, 0.07 s in all"), "{text}");
    }
}
