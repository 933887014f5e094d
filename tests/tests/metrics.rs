//! The metrics as a scraper reads them: the format, the names that dashboards depend on, and right values.

#![expect(clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use lastsyn_tests::{Agent, AgentConfig, Connection, Pair, Server, ServerConfig, agent, http};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn the_metrics_tell_what_happened() {
    let pair = Pair::new().unwrap();
    let _servers =
        [80, 8080].map(|port| Server::start(&pair.pod, ServerConfig { port, ..ServerConfig::default() }).unwrap());
    let queue = ServerConfig { port: 9000, accept: false, ..ServerConfig::default() };
    let _waiting = Server::start(&pair.pod, queue).unwrap();
    let config =
        AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "500ms").env("LASTSYN_LISTENERS_WATCH", "80,8080");
    let agent = Agent::start(&pair.pod, config).unwrap();
    let before = scrape(&pair).unwrap();
    let value = |metrics: &Metrics, sample: &str| metrics.samples.get(sample).copied();
    assert_eq!(value(&before, r#"lastsyn_drain_state{state="serving"}"#), Some(1.0));
    assert_eq!(value(&before, r#"lastsyn_drains_total{reason="quiet"}"#), None);
    assert!(!before.samples.keys().any(|sample| sample.starts_with("lastsyn_last_attempt_age_seconds")));

    for (target, times) in [(pair.targets(80)[0], 4), (pair.targets(80)[1], 3), (pair.targets(8080)[0], 2)] {
        for _ in 0..times {
            assert_eq!(Connection::open(&pair.client, target, SOON).unwrap().request().unwrap(), "server");
        }
    }
    let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");

    // An age is as of a reading: let there be one from after the drain's end.
    agent.status_of_now().unwrap();
    let after = scrape(&pair).unwrap();
    for (sample, expected) in [
        (r#"lastsyn_attempts_total{port="80",family="IPv4",class="new"}"#, 4.0),
        (r#"lastsyn_attempts_total{port="80",family="IPv6",class="new"}"#, 3.0),
        (r#"lastsyn_attempts_total{port="8080",family="IPv4",class="new"}"#, 2.0),
        (r#"lastsyn_attempts_total{port="8080",family="IPv6",class="new"}"#, 0.0),
        (r#"lastsyn_attempts_total{port="80",family="IPv4",class="opaque"}"#, 0.0),
        (r#"lastsyn_accept_queue{port="80"}"#, 0.0),
        (r#"lastsyn_drain_state{state="serving"}"#, 0.0),
        (r#"lastsyn_drain_state{state="draining"}"#, 0.0),
        (r#"lastsyn_drain_state{state="ended"}"#, 1.0),
        (r#"lastsyn_drains_total{reason="quiet"}"#, 1.0),
        ("lastsyn_drain_duration_seconds_count", 1.0),
        (r#"lastsyn_drain_duration_seconds_bucket{le="+Inf"}"#, 1.0),
        (r#"lastsyn_sensor_info{strategy="tcx"}"#, 1.0),
        ("lastsyn_sensor_healthy", 1.0),
        (concat!("lastsyn_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0),
    ] {
        assert_eq!(value(&after, sample), Some(expected), "{sample} in {after:#?}");
    }
    let took = value(&after, "lastsyn_drain_duration_seconds_sum").unwrap();
    assert!((took - verdict["durationMs"].as_f64().unwrap() / 1000.0).abs() < 0.0015, "{took} and {verdict}");
    let age = value(&after, r#"lastsyn_last_attempt_age_seconds{port="80",family="IPv4"}"#).unwrap();
    assert!(age >= took, "{age} s ago, before a drain of {took} s");
    // No family, whatever it counts, names a port that is not watched.
    assert!(!after.samples.keys().any(|sample| sample.contains("9000")), "{after:#?}");
}

#[test]
fn waiting_connections_and_the_other_strategy_are_shown() {
    let pair = Pair::new().unwrap();
    let config = ServerConfig { accept: false, ..ServerConfig::default() };
    let _server = Server::start(&pair.pod, config).unwrap();
    let config = AgentConfig::default()
        .env("LASTSYN_SENSOR_STRATEGY", "counters")
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "200ms")
        .env("LASTSYN_DRAIN_MAX_WAIT", "500ms");
    let agent = Agent::start(&pair.pod, config).unwrap();
    let _waiting: Vec<Connection> =
        (0..3).map(|_| Connection::open(&pair.client, pair.targets(80)[0], SOON).unwrap()).collect();
    assert_eq!(agent.drain().unwrap().wait(SOON).unwrap().verdict["reason"], "bound");
    let metrics = scrape(&pair).unwrap();
    for (sample, expected) in [
        (r#"lastsyn_accept_queue{port="80"}"#, 3.0),
        (r#"lastsyn_sensor_info{strategy="counters"}"#, 1.0),
        ("lastsyn_sensor_healthy", 0.0),
        (r#"lastsyn_drains_total{reason="bound"}"#, 1.0),
    ] {
        assert_eq!(metrics.samples.get(sample), Some(&expected), "{sample} in {metrics:#?}");
    }
}

/// What a scraper understood.
#[derive(Debug)]
struct Metrics {
    /// By name and labels, as written.
    samples: BTreeMap<String, f64>,
}

/// From outside, as Prometheus does.
fn scrape(pair: &Pair) -> Result<Metrics> {
    let answer = http::get(&pair.client, pair.targets(agent::PORT)[0], "/metrics", SOON)?;
    ensure!(answer.status == 200, "{answer:?}");
    parse(&answer.body).with_context(|| answer.body.clone())
}

/// Reads OpenMetrics text as strictly as its specification: families are declared once, before their samples, and not
/// interleaved; names end as their types say; no sample twice; a last line.
fn parse(text: &str) -> Result<Metrics> {
    let body = text.strip_suffix("# EOF\n").context("the last line is not `# EOF`")?;
    let (mut samples, mut declared) = (BTreeMap::new(), BTreeSet::new());
    let mut family = ("", "");
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let (keyword, rest) = rest.split_once(' ').context("a comment that says nothing")?;
            let (name, what) = rest.split_once(' ').with_context(|| format!("`{line}`"))?;
            match keyword {
                "TYPE" => {
                    ensure!(declared.insert(name), "{name} is declared twice");
                    family = (name, what);
                }
                "HELP" => ensure!(!what.is_empty(), "{name} is not explained"),
                "UNIT" => ensure!(name.ends_with(&format!("_{what}")), "the name {name} lacks its unit {what}"),
                _ => bail!("`{line}`"),
            }
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').with_context(|| format!("`{line}` is no sample"))?;
        let name = sample.split('{').next().unwrap_or_default();
        let suffix =
            name.strip_prefix(family.0).with_context(|| format!("{name} is not of the family {}", family.0))?;
        let suffixes: &[&str] = match family.1 {
            "counter" => &["_total", "_created"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_count", "_sum", "_created"],
            other => bail!("the type {other} of {}", family.0),
        };
        ensure!(suffixes.contains(&suffix), "{name} is no name for a {}", family.1);
        ensure!(name.starts_with("lastsyn_"), "{name} is not one of ours");
        let value: f64 = value.parse().with_context(|| format!("`{line}`"))?;
        ensure!(samples.insert(sample.to_owned(), value).is_none(), "{sample} is there twice");
    }
    Ok(Metrics { samples })
}
