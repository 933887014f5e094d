//! The scenarios: what happens when, counted from the pod's deletion.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use lastsyn::config::{DurationError, parse_duration};

use super::text::seconds;

/// Connections per second of the client, to all its targets together.
pub(super) const PACE: u32 = 100;
/// SYNs per second of the storm.
pub(super) const STORM_PACE: u32 = 2000;
/// How long the client of `pause` pauses. Less than the quiet period.
pub(super) const PAUSE: Duration = Duration::from_millis(1500);

/// When `pause` begins to pause.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(2500)];
/// When the impatient server of `closed-port` closes its listeners.
const CLOSING: Duration = Duration::from_secs(1);

/// What is demonstrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// The client never stops; the node moves its new connections to another pod
    Steady,
    /// The same, with a client that pauses twice during the drain
    Pause,
    /// The client stops just before the pod is deleted
    Stops,
    /// A flood of SYNs from forged sources beside the client
    Storm,
    /// The server closes its listeners before the hook has answered
    ClosedPort,
}

/// What the demonstration is asked for.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What is demonstrated
    #[arg(long, value_name = "NAME", default_value = "steady")]
    pub scenario: Scenario,
    /// The same without the hook: the server is stopped at once, and connections are lost (steady only)
    #[arg(long)]
    pub without_hook: bool,
    /// When the node moves new connections to the other pod, counted from the pod's deletion [default: 3s; pause: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub move_after: Option<Duration>,
    /// Print one JSON object with verdict and numbers; the progress goes to standard error
    #[arg(long)]
    pub json: bool,
}

/// What is to be played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) scenario: Scenario,
    pub(super) hook: bool,
    pub(super) move_after: Duration,
}

/// Something that is done at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    PauseClient,
    ResumeClient,
    CloseListeners,
    MoveForwarding,
}

fn duration(text: &str) -> Result<Duration, DurationError> {
    parse_duration(text)
}

// === impl Options ===

impl Options {
    /// Checks that the options fit together.
    pub(super) fn plan(&self) -> Result<Plan> {
        let Self { scenario, without_hook, move_after, json: _ } = *self;
        ensure!(!without_hook || scenario == Scenario::Steady, "--without-hook goes with --scenario steady only");
        let (usual, earliest) = scenario.move_after();
        let move_after = move_after.unwrap_or(usual);
        ensure!(
            (earliest..=Duration::from_secs(10)).contains(&move_after),
            "--move-after of {} is out of the range of {}, {} to 10 s",
            seconds(move_after),
            scenario.name(),
            seconds(earliest)
        );
        Ok(Plan { scenario, hook: !without_hook, move_after })
    }
}

// === impl Scenario ===

impl Scenario {
    /// As it is given on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Pause => "pause",
            Self::Stops => "stops",
            Self::Storm => "storm",
            Self::ClosedPort => "closed-port",
        }
    }

    /// When the forwarding usually moves, and when it can at the earliest for the scenario to show what it is for.
    fn move_after(self) -> (Duration, Duration) {
        match self {
            Self::Steady | Self::Stops | Self::Storm => (Duration::from_secs(3), Duration::from_millis(100)),
            Self::Pause => (Duration::from_secs(5), Duration::from_millis(4500)),
            Self::ClosedPort => (Duration::from_secs(3), Duration::from_millis(1500)),
        }
    }
}

// === impl Plan ===

impl Plan {
    /// What is shown, in words.
    pub(super) fn about(&self) -> String {
        let moves = seconds(self.move_after);
        match (self.scenario, self.hook) {
            (_, false) => format!(
                "What lastsyn is for: the pod is deleted and its server stopped at once, while the node goes on sending \
                 it new connections for {moves}."
            ),
            (Scenario::Steady, _) => format!(
                "A client that never stops. {moves} after the pod's deletion the node sends its new connections to another \
                 pod. The hook answers when the last one has come."
            ),
            (Scenario::Pause, _) => format!(
                "The client pauses twice for {}, less than the quiet period of 2 s, and the drain is not fooled. A longer \
                 pause would fool it: this version watches SYNs alone, not yet the cluster's routing.",
                seconds(PAUSE)
            ),
            (Scenario::Stops, _) => "The client stops just before the pod's deletion. What a drain costs when nothing \
                                     more comes: the quiet period of 2 s."
                .to_owned(),
            (Scenario::Storm, _) => format!(
                "Beside the client {STORM_PACE} SYNs per second from forged sources fill the server's backlog, so that its \
                 kernel answers with SYN cookies. They count as connections, for who could tell; the drain holds."
            ),
            (Scenario::ClosedPort, _) => format!(
                "What lastsyn is to prevent: a server that closes its listeners {} after the pod's deletion, while \
                 connections still come. The agent goes on counting them on the closed port.",
                seconds(CLOSING)
            ),
        }
    }

    /// What is done when, counted from the pod's deletion, in order.
    pub(super) fn steps(&self) -> Vec<(Duration, Step)> {
        let mut steps = vec![(self.move_after, Step::MoveForwarding)];
        match self.scenario {
            Scenario::Steady | Scenario::Storm => {}
            Scenario::Pause => {
                let pauses = PAUSES.map(|begin| [(begin, Step::PauseClient), (begin + PAUSE, Step::ResumeClient)]);
                steps.extend(pauses.concat());
            }
            // It comes back when the forwarding has moved, and sees whether anybody serves it.
            Scenario::Stops => steps.push((self.move_after, Step::ResumeClient)),
            Scenario::ClosedPort => steps.push((CLOSING, Step::CloseListeners)),
        }
        // Stable: what has the same time stays in order.
        steps.sort_by_key(|(after, _)| *after);
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(scenario: Scenario) -> Options {
        Options { scenario, without_hook: false, move_after: None, json: false }
    }

    #[test]
    fn a_scenario_s_name_is_what_the_command_line_takes() {
        for scenario in Scenario::value_variants() {
            assert_eq!(Scenario::from_str(scenario.name(), false), Ok(*scenario));
        }
    }

    #[test]
    fn pauses_are_over_before_the_forwarding_moves() {
        let plan = options(Scenario::Pause).plan().unwrap();
        let steps: Vec<_> = plan.steps().into_iter().map(|(_, step)| step).collect();
        let pause = [Step::PauseClient, Step::ResumeClient];
        assert_eq!(steps, [pause.as_slice(), &pause, &[Step::MoveForwarding]].concat());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let early = Options { move_after: Some(Duration::from_secs(1)), ..options(Scenario::Pause) };
        let error = early.plan().unwrap_err().to_string();
        assert!(error.contains("--move-after") && error.contains("4.5 s"), "{error}");
        let without = Options { without_hook: true, ..options(Scenario::Stops) };
        assert!(without.plan().unwrap_err().to_string().contains("--without-hook"));
    }
}
