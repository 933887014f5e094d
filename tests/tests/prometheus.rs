//! A real Prometheus reads a real agent through a whole drain: every documented metric, with the verdict's values at the end; it
//! understands the chart's rules and every query of its dashboard.

#![expect(clippy::indexing_slicing, reason = "what is missing fails the test")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, Connection, Pair, Prometheus, Server, ServerConfig, agent, await_condition, http,
    openmetrics::documented, promtool,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);

fn of_the_chart(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/lastsyn").join(file)
}

/// The dashboard's queries, as Grafana sends them, each with its panel's title.
fn queries() -> Result<Vec<(String, String)>> {
    let dashboard: Value = serde_json::from_slice(&fs::read(of_the_chart("dashboards/lastsyn.json"))?)?;
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().context("no panels")? {
        let title = panel["title"].as_str().context("a panel without a title")?;
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().with_context(|| format!("{title} has a target without a query"))?;
            let query = query.replace("$__rate_interval", "10s").replace("$namespace", ".*");
            ensure!(!query.contains('$'), "{title}: a variable that is not known here: {query}");
            queries.push((title.to_owned(), query));
        }
    }
    ensure!(queries.len() > 20, "{queries:?}");
    Ok(queries)
}

#[test]
fn promtool_takes_the_rules() -> Result<()> {
    let rules = of_the_chart("rules/lastsyn.yaml");
    let said = promtool(&["check", "rules", rules.to_str().context("a path of UTF-8")?], "")?;
    ensure!(said.contains("SUCCESS"), "{said}");
    Ok(())
}

/// OpenMetrics in the format from before it (0.0.4), which is all that `promtool check metrics` reads: a family there has the name of
/// its samples, no unit, and no type `info`.
fn older_format(text: &str) -> Result<String> {
    let mut kinds = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            kinds.insert(name, kind);
        }
    }
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("# UNIT") && *line != "# EOF") {
        let Some((keyword, rest)) = line.strip_prefix("# ").and_then(|line| line.split_once(' ')) else {
            lines.push(line.to_owned());
            continue;
        };
        let (name, what) = rest.split_once(' ').with_context(|| format!("`{line}`"))?;
        let (end, kind) = match kinds.get(name).copied().with_context(|| format!("{name} has no type"))? {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            kind => ("", kind),
        };
        let what = if keyword == "TYPE" { kind } else { what };
        lines.push(format!("# {keyword} {name}{end} {what}"));
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

#[test]
fn a_real_prometheus_reads_a_whole_drain() -> Result<()> {
    let pair = Pair::new()?;
    // What an operator does by `kernel.bpf_stats_enabled`, for as long as this is open.
    let _account = aya::sys::enable_stats(aya::sys::Stats::RunTime)?;
    let _server = Server::start(&pair.pod, ServerConfig::default())?;
    let agent = Agent::start(&pair.pod, AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "3s"))?;
    let prometheus =
        Prometheus::start(&pair.client, &[pair.targets(agent::PORT)[0]], &of_the_chart("rules/lastsyn.yaml"))?;
    let is = |query: &str, value: f64| -> Result<()> {
        await_condition(query, SOON, || match prometheus.query(query) {
            Ok(series) => series.iter().any(|series| (series.value - value).abs() < 1e-9).then_some(Ok(())),
            Err(error) => Some(Err(error)),
        })
        .and_then(|outcome| outcome)
        .with_context(|| format!("it is {:?}", prometheus.query(query)))
    };
    is("up", 1.0)?;
    is(r#"lastsyn_drain_state{state="serving"}"#, 1.0)?;
    let call = agent.drain()?;
    is(r#"lastsyn_drain_state{state="draining"}"#, 1.0)?;
    for target in pair.targets(80) {
        ensure!(Connection::open(&pair.client, target, SOON)?.request()? == "server");
    }
    let verdict = call.wait(SOON)?.verdict;
    let reason = verdict["reason"].as_str().context("no reason")?.to_owned();
    is(&format!("lastsyn_drains_total{{reason=\"{reason}\"}}"), 1.0)?;

    // Read after the drain's end, as that is there: every metric, and the values that the verdict tells.
    for (family, at) in [("IPv4", 0), ("IPv6", 1)] {
        let told =
            verdict.pointer(&format!("/listeners/0/families/{at}/new")).and_then(Value::as_f64).context("new")?;
        ensure!((told - 1.0).abs() < 1e-9, "{verdict:#}");
        is(&format!("lastsyn_attempts_total{{port=\"80\",family=\"{family}\",class=\"new\"}}"), told)?;
    }
    let took = verdict["durationMs"].as_f64().context("no duration")? / 1000.0;
    let sum = prometheus.query("lastsyn_drain_duration_seconds_sum")?;
    ensure!(sum.len() == 1 && (sum[0].value - took).abs() < 0.0015, "{sum:?}, and the verdict has {took}");
    let is_there = |name: &str| -> Result<bool> { Ok(!prometheus.query(name)?.is_empty()) };
    for family in documented("The agent")? {
        let name = if family.kind == "histogram" { format!("{}_bucket", family.name) } else { family.name };
        // Some are there once the next scrape has come.
        await_condition(&format!("{name} in Prometheus"), SOON, || is_there(&name).unwrap_or(false))?;
    }
    ensure!(!is_there("lastsyn_weather")?, "a metric that there is not");

    for rule in prometheus.rules()? {
        ensure!(rule["health"] == "ok" && rule["state"] == "inactive", "{rule:#}");
    }
    for (title, query) in queries()? {
        prometheus.query(&query).with_context(|| format!("{title}: {query}"))?;
    }
    // What stands there for one drain.
    is(r#"sum(lastsyn_drains_total{namespace=~".*"})"#, 1.0)?;
    let text = http::get(&pair.client, pair.targets(agent::PORT)[0], "/metrics", SOON)?.body;
    let said = promtool(&["check", "metrics"], &older_format(&text)?)?;
    ensure!(said.trim().is_empty(), "{said}");
    Ok(())
}
