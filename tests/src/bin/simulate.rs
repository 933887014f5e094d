//! `cargo xtask simulate`: drains by the thousand, in a cluster in one thread.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use lastsyn_tests::simulator::{Account, Campaign, Found, Rule, Scenario, account};

/// Plays drains by the real core in a simulated cluster, and holds every verdict against what the nodes do. Without
/// `--drains`, one drain is told.
#[derive(Parser)]
#[command(name = "simulate", bin_name = "cargo xtask simulate")]
struct Arguments {
    /// What happens in them; every scenario where none is named
    #[arg(long)]
    scenario: Option<Scenario>,
    /// The first drain's seed; the others follow
    #[arg(long)]
    seed: Option<u64>,
    /// How many drains of each scenario
    #[arg(long)]
    drains: Option<u64>,
    /// In how many threads
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Who decides: the core, or the rule that a node has the change whose stamp is newer than it
    #[arg(long, value_enum, default_value_t = By::Core)]
    rule: By,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Core,
    Seed,
}

fn main() -> Result<ExitCode> {
    let stopped_reading = |error: &anyhow::Error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    match run() {
        Err(error) if stopped_reading(&error) => Ok(ExitCode::SUCCESS),
        result => result,
    }
}

fn run() -> Result<ExitCode> {
    let Arguments { scenario, seed, drains, jobs, rule } = Arguments::parse();
    let rule = match rule {
        By::Core => Rule::Core,
        By::Seed => Rule::NewerStamp,
    };
    if let (Some(scenario), Some(seed), None) = (scenario, seed, drains) {
        return tell(scenario, seed, rule);
    }
    let scenarios = scenario.map_or_else(|| Scenario::ALL.to_vec(), |scenario| vec![scenario]);
    let first_seed = seed.unwrap_or(0);
    for scenario in scenarios {
        let campaign = Campaign { scenario, first_seed, drains: drains.unwrap_or(10_000), jobs, rule };
        if let Some(found) = play(&campaign)? {
            writeln!(io::stdout(), "\n{scenario}, seed {}: {}\n", found.seed, found.failure)?;
            return tell(scenario, found.seed, rule);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Plays them and sums up.
fn play(campaign: &Campaign) -> Result<Option<Found>> {
    let begin = now();
    let summary = campaign.run();
    let took = begin.elapsed();
    let rate = Duration::from_secs(1).as_nanos() * u128::from(summary.drains) / took.as_nanos().max(1);
    let Campaign { scenario, first_seed, .. } = campaign;
    writeln!(
        io::stdout(),
        "{:<14} seeds {first_seed}..  {summary}  by evidence {}.{} %  {:.1} s, {rate} drains/s",
        scenario.name(),
        summary.by_evidence_per_mille() / 10,
        summary.by_evidence_per_mille() % 10,
        took.as_secs_f64(),
    )?;
    Ok(summary.found)
}

/// Tells one drain.
fn tell(scenario: Scenario, seed: u64, rule: Rule) -> Result<ExitCode> {
    let Account { failure, steps, lines } = account(scenario, seed, rule);
    let mut output = io::stdout().lock();
    writeln!(output, "{scenario}, seed {seed}; seconds since the hook's call")?;
    writeln!(output, "\nwhat was planned{}:", if failure.is_some() { ", as far as it takes to fail" } else { "" })?;
    for step in &steps {
        writeln!(output, "{step}")?;
    }
    writeln!(output, "\nwhat happened:")?;
    for line in &lines {
        writeln!(output, "{line}")?;
    }
    Ok(if failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[expect(clippy::disallowed_methods, reason = "measures how fast the simulator is; the world has no clock")]
fn now() -> Instant {
    Instant::now()
}
