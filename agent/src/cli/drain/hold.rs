//! The hold itself: ask, ask again, until a verdict or the bound.

use std::time::Duration;

use hyper::{Method, StatusCode};
use serde::Deserialize;
use tokio::time::{self, Instant};

use crate::{
    client::{Answer, Candidate, Connection, Request},
    core::verdict::Verdict,
};

/// Between two rounds of asking: first, then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// At most this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How many letters of an agent's reason are told.
const LONGEST_REASON: usize = 200;

/// How the hold ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// By a verdict.
    Verdict(Answered),
    /// By the hook's own bound.
    Bound(Unanswered),
}

/// A verdict. An agent of another version may give reasons, conditions and fields that this one does not know: it ends
/// the hold all the same.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) reason: String,
    pub(super) duration_ms: u64,
    /// The whole, where all of it is known here.
    pub(super) known: Option<Box<Verdict>>,
    /// As it came, on one line.
    pub(super) line: String,
}

/// What was seen of an agent that gave no verdict.
#[derive(Debug)]
pub(super) struct Unanswered {
    /// Whether anybody took a connection.
    pub(super) reached: bool,
    /// What became of the last attempt at each place.
    pub(super) failures: Vec<String>,
}

/// Holds until a verdict, at the latest until `start + bound`. `say` is told once why there is none yet.
pub(super) async fn hold(start: Instant, bound: Duration, agents: &[Candidate], say: impl Fn(&str)) -> Outcome {
    let deadline = start + bound;
    let mut seen: Vec<Option<String>> = vec![None; agents.len()];
    let (mut reached, mut said, mut pause) = (false, false, FIRST_PAUSE);
    while Instant::now() < deadline {
        let round = Instant::now();
        for (agent, seen) in agents.iter().zip(&mut seen) {
            match time::timeout_at(deadline, attempt(agent, deadline, &mut reached, seen)).await {
                Ok(Some(outcome)) => return outcome,
                Ok(None) => {}
                Err(_elapsed) => break,
            }
        }
        if !said {
            said = true;
            say(&summary(&seen).join("; "));
        }
        // An agent that held the request for a while and then went away may be back at once.
        pause = if round.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { pause };
        time::sleep_until(deadline.min(Instant::now() + pause)).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
    Outcome::Bound(Unanswered { reached, failures: summary(&seen) })
}

/// Asks one agent. Dropped at the deadline, it leaves behind in `seen` how far it came.
async fn attempt(
    agent: &Candidate,
    deadline: Instant,
    reached: &mut bool,
    seen: &mut Option<String>,
) -> Option<Outcome> {
    let connection = match Connection::open(agent).await {
        Ok(connection) => connection,
        Err(error) => {
            *seen = Some(format!("{agent}: {error}"));
            return None;
        }
    };
    *reached = true;
    *seen = Some(format!("{agent}: connected, and waited for the answer"));
    let max_wait = Some(deadline.saturating_duration_since(Instant::now()));
    let failure = match connection.ask(&Request { max_wait, ..Request::new(Method::POST, "/drain") }).await {
        Ok(answer) => match verdict(&answer) {
            Ok(verdict) => return Some(Outcome::Verdict(verdict)),
            Err(failure) => failure,
        },
        Err(error) => error.to_string(),
    };
    *seen = Some(format!("{agent}: {failure}"));
    None
}

fn summary(seen: &[Option<String>]) -> Vec<String> {
    seen.iter().flatten().cloned().collect()
}

/// The verdict in an answer, or what the answer is instead. A reason and a duration are what every version's has.
fn verdict(answer: &Answer) -> Result<Answered, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Least {
        reason: String,
        duration_ms: u64,
    }

    if answer.status != StatusCode::OK {
        let said = serde_json::from_slice::<serde_json::Value>(&answer.body).ok();
        let why = said.as_ref().and_then(|said| said.get("error")?.as_str()).unwrap_or_default();
        let why: String = why.chars().take(LONGEST_REASON).collect();
        return Err(format!("answered {}{}{why}", answer.status, if why.is_empty() { "" } else { ": " }));
    }
    let no_verdict = |error: serde_json::Error| format!("answered, but no verdict: {error}");
    let whole: serde_json::Value = serde_json::from_slice(&answer.body).map_err(no_verdict)?;
    if !whole.is_object() {
        return Err("answered, but no verdict: it is no JSON object".to_owned());
    }
    let line = whole.to_string();
    let Least { reason, duration_ms } = Least::deserialize(&whole).map_err(no_verdict)?;
    Ok(Answered { reason, duration_ms, known: serde_json::from_value(whole).ok(), line })
}

/// Waits without a runtime.
pub(super) fn sleep_until(deadline: Instant) {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        // It may return early, so it is asked again.
        std::thread::park_timeout(left);
    }
}
