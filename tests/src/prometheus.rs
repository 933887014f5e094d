//! A real Prometheus that scrapes agents, and its `promtool`.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{Host, Process, http, programs, wait::await_condition};

/// Where `cargo xtask setup` keeps it.
const DIRECTORY: &str = "prometheus-2.42";
/// Where it answers, in its host.
const ADDRESS: &str = "127.0.0.1:9090";
const SOON: Duration = Duration::from_secs(30);

/// A Prometheus that scrapes once a second. It is killed when dropped.
#[derive(Debug)]
pub struct Prometheus {
    process: Process,
    host: Host,
}

/// One series of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its labels, as JSON.
    pub labels: Value,
    /// Its newest value.
    pub value: f64,
}

// === impl Prometheus ===

impl Prometheus {
    /// Starts one in a host, with targets to scrape and a file of rules, and waits until it answers.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn start(host: &Host, targets: &[SocketAddr], rules: &Path) -> Result<Self> {
        let directory = host.directory().join("prometheus");
        fs::create_dir(&directory)?;
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        // YAML takes JSON.
        let labels = json!({"namespace": "shop", "pod": "web"});
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules],
            "scrape_configs": [{"job_name": "lastsyn", "static_configs": [{"targets": targets, "labels": labels}]}],
        });
        let file = directory.join("prometheus.yml");
        fs::write(&file, config.to_string())?;
        let mut command = host.command(programs::cached(&format!("{DIRECTORY}/prometheus"))?)?;
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
            .arg(format!("--web.listen-address={ADDRESS}"))
            .arg("--log.level=warn");
        let prometheus = Self {
            process: Process::start(format!("Prometheus in {}", host.role()), &mut command)?,
            host: host.clone(),
        };
        await_condition("Prometheus", SOON, || match prometheus.process.ensure_running() {
            Ok(()) => prometheus.get("/-/ready").is_ok().then_some(Ok(())),
            Err(ended) => Some(Err(ended)),
        })
        .with_context(|| prometheus.process.report())??;
        Ok(prometheus)
    }

    fn get(&self, path: &str) -> Result<http::Answer> {
        let answer = http::get(&self.host, ADDRESS.parse()?, path, SOON)?;
        ensure!(answer.status == 200, "Prometheus answered {path} with {}: {}", answer.status, answer.body);
        Ok(answer)
    }

    /// What an expression is now.
    ///
    /// # Errors
    ///
    /// When Prometheus does not understand it; in its words.
    pub fn query(&self, expression: &str) -> Result<Vec<Series>> {
        let mut escaped = String::new();
        for byte in expression.bytes() {
            write!(escaped, "%{byte:02X}")?;
        }
        let answer: Value = self.get(&format!("/api/v1/query?query={escaped}"))?.json()?;
        let series = answer.pointer("/data/result").and_then(Value::as_array).context("no result")?;
        series
            .iter()
            .map(|series| {
                let value = series.pointer("/value/1").and_then(Value::as_str).context("no value")?;
                let labels = series.get("metric").cloned().unwrap_or_default();
                Ok(Series { labels, value: value.parse()? })
            })
            .collect()
    }

    /// Its rules, as `GET /api/v1/rules` has them.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn rules(&self) -> Result<Vec<Value>> {
        let answer: Value = self.get("/api/v1/rules")?.json()?;
        let groups = answer.pointer("/data/groups").and_then(Value::as_array).context("no groups")?;
        let rules = groups.iter().filter_map(|group| group.get("rules")?.as_array()).flatten();
        Ok(rules.cloned().collect())
    }
}

/// `promtool` with arguments and standard input: everything that it has to say.
///
/// # Errors
///
/// When it does not run, or finds something wrong.
pub fn promtool(arguments: &[&str], input: &str) -> Result<String> {
    let mut promtool = Command::new(programs::cached(&format!("{DIRECTORY}/promtool"))?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("promtool did not start")?;
    promtool.stdin.take().context("promtool takes no input")?.write_all(input.as_bytes())?;
    let output = promtool.wait_with_output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !output.status.success() {
        bail!("promtool {arguments:?} ({}): {said}", output.status);
    }
    Ok(said)
}
