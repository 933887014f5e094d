//! The page of a long drain's report: ten listeners over both families, sent to until the bound, ten minutes. How large it is, and how long
//! Chromium takes to show all of it.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::Record;
use crate::{
    Agent, AgentConfig, Pair, Server, ServerConfig, agent, clock::Deadline, connect_once, monotonic_now,
    process::Stream, wait::await_condition,
};

/// How large the page may be, in bytes.
pub const LARGEST: u64 = 300 * 1024;
/// How long Chromium may take to show it, beyond what it takes to show an empty page.
pub const LONGEST: Duration = Duration::from_secs(1);

/// How many listeners there are.
const LISTENERS: u16 = 10;
const FIRST_PORT: u16 = 8000;
/// How often each page is shown: the fastest counts, as what else the machine does only makes one slower.
const TIMES: usize = 7;
/// Between two rounds of connections.
const PACE: Duration = Duration::from_millis(150);
const SOON: Duration = Duration::from_secs(30);

/// One drain, and its page.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The drain's verdict.
    pub verdict: Value,
    /// The page, in bytes.
    pub size: u64,
    /// How many lanes its report has.
    pub lanes: usize,
    /// How many attempts it tells of.
    pub attempts: u64,
    /// How long the browser took from its start to the picture of the whole page, each time.
    pub page: Vec<Duration>,
    /// The same of an empty page.
    pub empty: Vec<Duration>,
}

/// Drains for as long as `bound`, makes the page, and has it shown so many times.
///
/// # Errors
///
/// When the scene cannot be made, or there is no Chromium.
pub fn show(bound: Duration, times: usize) -> Result<Shown> {
    let pair = Pair::new()?;
    let ports = FIRST_PORT..FIRST_PORT + LISTENERS;
    let start = |port| Server::start(&pair.pod, ServerConfig { port, ..ServerConfig::default() });
    let _servers = ports.clone().map(start).collect::<Result<Vec<_>>>()?;
    let config = AgentConfig::default()
        .env("LASTSYN_DRAIN_MAX_WAIT", format!("{}s", bound.as_secs()))
        .env("LASTSYN_POD_NAME", "web-1");
    let agent = Agent::start(&pair.pod, config)?;
    await_condition("the listeners", SOON, || {
        let status = agent.status_of_now().ok()?;
        (status.get("listeners")?.as_array()?.len() == usize::from(LISTENERS)).then_some(())
    })?;
    let call = agent.drain()?;
    let mut round = 0;
    while call.answered()?.is_none() {
        // Each has a rhythm of its own, so that the lanes are not all alike.
        for (number, port) in (1_u16..).zip(ports.clone()).filter(|(number, _)| round % number == 0) {
            let targets = pair.targets(port);
            let target = targets.get(usize::from(round / number) % targets.len()).context("no address")?;
            connect_once(&pair.client, *target, SOON);
        }
        round += 1;
        let next = Deadline::after(PACE);
        await_condition("the next round", SOON, || next.passed())?;
    }
    let verdict = call.wait(SOON)?.verdict;
    let directory = tempfile::tempdir()?;
    let (answer, page) = (directory.path().join("report.json"), directory.path().join("page.html"));
    let report = agent.get("/v1/report")?;
    fs::write(&answer, &report.body)?;
    let made = agent::subcommand(&pair.pod, "report", [&answer, Path::new("--html"), &page])?;
    made.wait_for_success(SOON).with_context(|| made.text(Stream::Error))?;
    let report = report.json()?;
    let lanes = report.pointer("/reports/0/attempts/lanes").and_then(Value::as_array).context("no lanes")?;
    let bins = lanes.iter().filter_map(|lane| lane.get("counting")?.as_array()).flatten();
    let empty = directory.path().join("empty.html");
    fs::write(&empty, "<!doctype html><title>empty</title>")?;
    // One after the other, so that what else the machine does meets both.
    let (mut pages, mut empties) = (Vec::new(), Vec::new());
    for _ in 0..times {
        pages.push(picture(&page, directory.path())?);
        empties.push(picture(&empty, directory.path())?);
    }
    Ok(Shown {
        size: fs::metadata(&page)?.len(),
        lanes: lanes.len(),
        attempts: bins.filter_map(Value::as_u64).sum(),
        page: pages,
        empty: empties,
        verdict,
    })
}

/// How long Chromium takes from its start to a picture of a page.
fn picture(page: &Path, directory: &Path) -> Result<Duration> {
    let to = directory.join("picture.png");
    let began = monotonic_now();
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1040,5000"]);
    browser.arg(format!("--user-data-dir={}", directory.join("browser").display()));
    browser.arg(format!("--screenshot={}", to.display())).arg(format!("file://{}", page.display()));
    let done = browser.stdin(Stdio::null()).output().context("no chromium: `cargo xtask setup` gets it")?;
    let took = Duration::from_nanos(monotonic_now().saturating_sub(began));
    ensure!(done.status.success(), "chromium: {}", String::from_utf8_lossy(&done.stderr));
    ensure!(fs::read(&to)?.starts_with(b"\x89PNG"), "chromium made no picture");
    fs::remove_file(&to)?;
    Ok(took)
}

impl Shown {
    /// What the page itself takes: the fastest with it, less the fastest without.
    pub fn took(&self) -> Duration {
        fastest(&self.page).saturating_sub(fastest(&self.empty))
    }

    /// All but how long it takes, which is the machine's: `cargo xtask prove report-page` tells that.
    ///
    /// # Errors
    ///
    /// When the page is larger than it may be, or shows less than there was.
    pub fn check(&self) -> Result<()> {
        ensure!(self.verdict.get("reason") == Some(&"bound".into()), "{:#}", self.verdict);
        ensure!(self.lanes == usize::from(LISTENERS) * 2, "{} lanes", self.lanes);
        ensure!(self.size <= LARGEST, "the page has {} bytes", self.size);
        Ok(())
    }
}

fn fastest(times: &[Duration]) -> Duration {
    times.iter().copied().min().unwrap_or_default()
}

/// `cargo xtask prove report-page`: ten minutes, or as many as `--minutes N` says.
///
/// # Errors
///
/// As [`show`] and [`Shown::check`] say, and for another argument than `--again`.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut arguments: Vec<String> = arguments.collect();
    let mut minutes = 10;
    if let Some(at) = arguments.iter().position(|argument| argument == "--minutes") {
        arguments.remove(at);
        ensure!(at < arguments.len(), "--minutes needs a number");
        minutes = arguments.remove(at).parse().context("--minutes needs a number")?;
    }
    let mut record = Record::asked_for("report-page.jsonl", arguments.into_iter())?;
    if !record.lines().is_empty() {
        bail!("{} has a result already; --again makes it anew", record.path().display());
    }
    let browser = Command::new("chromium").arg("--version").output().context("no chromium")?;
    let shown = show(Duration::from_mins(minutes), TIMES)?;
    let millis = |times: &[Duration]| {
        times.iter().map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).collect::<Vec<_>>()
    };
    let line = json!({
        "browser": String::from_utf8_lossy(&browser.stdout).trim(),
        "listeners": LISTENERS, "lanes": shown.lanes, "attempts": shown.attempts,
        "durationMs": shown.verdict.get("durationMs"), "pageBytes": shown.size,
        "pageMs": millis(&shown.page), "emptyMs": millis(&shown.empty), "tookMs": millis(&[shown.took()]).first(),
    });
    writeln!(io::stdout(), "{line:#}")?;
    shown.check()?;
    record.add(line)?;
    ensure!(shown.took() <= LONGEST, "it takes {:?}, more than {LONGEST:?}", shown.took());
    Ok(())
}
