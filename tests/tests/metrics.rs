//! The metrics as a scraper reads them: the format, the names that dashboards depend on, and right values.

#![expect(clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, Connection, Pair, Server, ServerConfig, agent, await_condition, http,
    openmetrics::{Metrics, documented},
};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn the_metrics_tell_what_happened() {
    let pair = Pair::new().unwrap();
    // What an operator does by `kernel.bpf_stats_enabled`, for as long as this is open.
    let _account = aya::sys::enable_stats(aya::sys::Stats::RunTime).unwrap();
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
    assert_eq!(
        value(&before, r#"lastsyn_drains_total{reason="quiet"}"#),
        Some(0.0),
        "an alert needs it from the start"
    );
    assert!(!before.samples.keys().any(|sample| sample.starts_with("lastsyn_last_attempt_age_seconds")));

    // It has a SYN that came, and stays.
    let kept = Connection::open(&pair.client, pair.targets(8080)[1], SOON).unwrap();
    for (target, times) in [(pair.targets(80)[0], 4), (pair.targets(80)[1], 3), (pair.targets(8080)[0], 2)] {
        for _ in 0..times {
            assert_eq!(Connection::open(&pair.client, target, SOON).unwrap().request().unwrap(), "server");
        }
    }
    let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");

    // An age is as of a reading: let there be one from after the drain's end.
    agent.status_of_now().unwrap();
    // Connections are counted at most once a second, and were at the first scrape.
    let established = r#"lastsyn_established{port="8080",family="IPv6"}"#;
    let after = await_condition("a new count of connections", SOON, || {
        scrape(&pair).ok().filter(|metrics| value(metrics, established) == Some(1.0))
    });
    let after = after.unwrap();
    for (sample, expected) in [
        (r#"lastsyn_attempts_total{port="80",family="IPv4",class="new"}"#, 4.0),
        (r#"lastsyn_attempts_total{port="80",family="IPv6",class="new"}"#, 3.0),
        (r#"lastsyn_attempts_total{port="8080",family="IPv4",class="new"}"#, 2.0),
        (r#"lastsyn_attempts_total{port="8080",family="IPv6",class="new"}"#, 1.0),
        (r#"lastsyn_established{port="80",family="IPv4"}"#, 0.0),
        (r#"lastsyn_handshakes{port="80",family="IPv4"}"#, 0.0),
        ("lastsyn_listeners_left_out", 0.0),
        ("lastsyn_watch_behind_total", 0.0),
        ("lastsyn_watch_lag_seconds_count", 0.0),
        (r#"lastsyn_confirmations_contradicted_total{by="fence"}"#, 0.0),
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
    let at_least = |sample: &str, least: f64| {
        let value = value(&after, sample).unwrap_or_default();
        assert!(value >= least, "{sample} is {value} in {after:#?}");
    };
    // Every SYN above ran it, and the packets behind each too; the drain read a few times.
    at_least(r#"lastsyn_program_runs_total{program="ingress"}"#, 20.0);
    at_least(r#"lastsyn_program_run_seconds_total{program="ingress"}"#, 1e-6);
    at_least("lastsyn_reading_duration_seconds_count", 3.0);
    at_least(r#"lastsyn_map_reads_total{purpose="decision"}"#, 3.0);
    at_least(r#"lastsyn_map_reads_total{purpose="report"}"#, 1.0);
    at_least("process_cpu_seconds_total", 1e-3);
    at_least("process_resident_memory_bytes", 1e6);
    at_least("process_open_fds", 5.0);
    after.ensure_documented(&documented("The agent").unwrap()).unwrap();
    drop(kept);
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

#[test]
fn a_pod_with_thousands_of_listeners_is_not_thousands_of_series() {
    let pair = Pair::new().unwrap();
    let ports = 2000..2300;
    let sockets = pair.pod.run(|| {
        ports.clone().map(|port| std::net::TcpListener::bind(("::", port))).collect::<std::io::Result<Vec<_>>>()
    });
    let _sockets = sockets.unwrap();
    let agent = Agent::start(&pair.pod, AgentConfig::default()).unwrap();
    agent.status_of_now().unwrap();
    let metrics = scrape(&pair).unwrap();
    let told = ports.filter(|port| metrics.samples.keys().any(|sample| sample.contains(&format!("port=\"{port}\""))));
    assert_eq!(told.count(), 61, "{metrics:#?}");
    assert_eq!(metrics.value("lastsyn_listeners_left_out"), Some(239.0), "{metrics:#?}");
    assert!(metrics.samples.len() < 61 * 24 + 200, "{}", metrics.samples.len());
}

/// From outside, as Prometheus does.
fn scrape(pair: &Pair) -> Result<Metrics> {
    let answer = http::get(&pair.client, pair.targets(agent::PORT)[0], "/metrics", SOON)?;
    ensure!(answer.status == 200, "{answer:?}");
    let metrics = Metrics::parse(&answer.body).with_context(|| answer.body.clone())?;
    let foreign = |name: &&String| !name.starts_with("lastsyn_") && !name.starts_with("process_");
    ensure!(!metrics.samples.keys().any(|name| foreign(&name)), "a name that is not ours: {metrics:#?}");
    Ok(metrics)
}
