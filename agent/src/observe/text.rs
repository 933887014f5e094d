//! An observation in words: as the agent's log has it in one sentence, and as `lastsyn report` shows it.

use std::fmt::Write;

use super::{Begun, Observation};
use crate::cli::words::seconds;

/// One sentence, with what it comes to.
pub fn sentence(observation: &Observation) -> String {
    let begun = match observation.by {
        Begun::Signal => "after SIGTERM",
        Begun::OwnHook => "after the pod's termination had begun",
    };
    let watched = seconds(observation.observed_for_ms);
    let seen = match (observation.last_after_ms, observation.listeners.first()) {
        (Some(last), Some(lane)) => format!(
            "new connections kept coming for {} {begun}, the last one to port {} over {}; watched for {watched}",
            seconds(last),
            lane.port,
            lane.family
        ),
        _ => format!("no new connection was seen {begun}; watched for {watched}"),
    };
    let Some(recommended) = observation.recommended else {
        return format!("{seen}; when connections came could not be seen, so that nothing is recommended");
    };
    let [sleep, max_wait] = [recommended.sleep_ms, recommended.max_wait_ms].map(|millis| millis / 1000);
    let advice = format!("a hook that only sleeps needs `sleep {sleep}`, a drain `maxWait: {max_wait}s`");
    let advice = if observation.stopped {
        format!("{seen}; {advice}")
    } else {
        format!("{seen}; they had not been quiet for long enough by then: at the least, {advice}")
    };
    match observation.not_observed.as_slice() {
        [] => advice,
        missed => {
            let missed: Vec<_> = missed.iter().map(|missed| format!("{}: {}", missed.what, missed.why)).collect();
            format!("{advice}; not observed: {}", missed.join(", "))
        }
    }
}

/// The whole, for a terminal or a file.
pub fn text(observation: &Observation) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        // Writing to a string does not fail.
        writeln!(text, "{}", words.trim_end()).ok();
    };
    let pod = &observation.pod;
    let whose = match (pod.namespace.as_str(), pod.name.as_str()) {
        (_, "") => "a pod that the agent was not told of".to_owned(),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    line(format!("The termination of {whose}, observed"));
    line(format!("began {}", observation.started_at));
    line(String::new());
    for part in sentence(observation).split("; ") {
        line(format!("  {part}"));
    }
    if !observation.listeners.is_empty() {
        line(String::new());
        line("New connections to".to_owned());
        for lane in &observation.listeners {
            let refused = if lane.refused > 0 { format!(", {} refused", lane.refused) } else { String::new() };
            let who = format!("{} {}", lane.port, lane.family);
            line(format!("  {who:<24} until {:<10} {}{refused}", seconds(lane.last_after_ms), lane.attempts));
        }
    }
    if observation.more > 0 {
        line(format!("  and {} more", observation.more));
    }
    if let Some(sources) = observation.sources.as_ref().filter(|sources| !sources.list.is_empty()) {
        line(String::new());
        line("From".to_owned());
        for source in &sources.list {
            let until = seconds(observation.observed_for_ms.saturating_sub(source.last_ago_ms));
            let to = format!("to {} over {}", source.port, source.family);
            line(format!("  {:<24} until {until:<10} {} {to}", source.from, source.attempts));
        }
        if sources.more > 0 {
            line(format!("  and {} more", sources.more));
        }
        if sources.forgotten > 0 {
            line(format!("  {} times a source was forgotten, as more came than are kept at once", sources.forgotten));
        }
    }
    text
}

/// What holds for all of them: the longest of each.
pub fn together(observations: &[Observation]) -> Option<String> {
    let recommended = observations.iter().filter_map(|observation| observation.recommended);
    let (sleep, max_wait) = recommended.map(|it| (it.sleep_ms, it.max_wait_ms)).max()?;
    let unfinished = observations.iter().filter(|observation| !observation.stopped).count();
    let but = if unfinished > 0 {
        format!("; in {unfinished} of them connections had not stopped, so that it may be more")
    } else {
        String::new()
    };
    Some(format!(
        "For the longest of {} terminations: `sleep {}`, or `maxWait: {}s`{but}",
        observations.len(),
        sleep / 1000,
        max_wait / 1000
    ))
}
