//! The whole way of a setting: from a file, a variable or a flag to the configuration, or to a message.

use std::{io::Write, net::SocketAddr, time::Duration};

use proptest::prelude::*;

use super::*;

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn file(text: &str) -> Result<Config, ConfigError> {
    assemble(Some((Path::new("/etc/lastsyn.yaml"), text)), &[], &[])
}

fn variable(name: &str, value: &str) -> Result<Config, ConfigError> {
    assemble(None, &pairs(&[(name, value)]), &[])
}

fn flag(name: &str, value: &str) -> Result<Config, ConfigError> {
    assemble(None, &[], &pairs(&[(name, value)]))
}

fn ports(watch: &Watch) -> Vec<u16> {
    match watch {
        Watch::Auto => panic!("auto"),
        Watch::Ports(ports) => ports.iter().map(|port| port.number()).collect(),
    }
}

/// The message of a refusal; every one names the key and where it was said.
fn refused(result: Result<Config, ConfigError>, names: &[&str]) -> ConfigError {
    let error = result.expect_err("a refusal");
    let message = error.to_string();
    for name in names {
        assert!(message.contains(name), "{message:?} does not name {name:?}");
    }
    error
}

#[test]
fn nothing_said_is_the_default() {
    assert_eq!(assemble(None, &[], &[]).expect("the default is valid"), Config::default());
    for empty in ["", "# nothing\n", "---\n", "drain:\n  # quietPeriod: 3s\n", "{}"] {
        assert_eq!(file(empty).expect(empty), Config::default(), "{empty:?}");
    }
    assert_eq!(Config::default().drain.bound(), Duration::from_secs(20));
}

#[test]
fn the_default_written_out_reads_back() {
    let text = serde_json::to_string(&Config::default()).expect("JSON");
    assert_eq!(file(&text).expect("JSON is YAML"), Config::default());
}

#[test]
fn each_source_lies_over_the_one_before() {
    let mut on_disk = tempfile::NamedTempFile::new().expect("a file");
    write!(on_disk, "drain: {{ quietPeriod: 3s, minWait: 3s, retryWait: 3s }}").expect("written");
    let arguments = Arguments { file: Some(on_disk.path().to_owned()), values: pairs(&[("drain.quiet-period", "5s")]) };
    let environment = pairs(&[("LASTSYN_DRAIN_QUIET_PERIOD", "4s"), ("LASTSYN_DRAIN_MIN_WAIT", "4s"), ("HOME", "/")]);
    let drain = load(&arguments, environment).expect("valid").drain;
    let seconds = [drain.quiet_period, drain.min_wait, drain.retry_wait, drain.handshake_grace].map(|d| d.as_secs());
    assert_eq!(seconds, [5, 4, 3, 3]);
}

#[test]
fn the_variable_names_the_file_where_the_flag_does_not() {
    let mut on_disk = tempfile::NamedTempFile::new().expect("a file");
    write!(on_disk, "drain: {{ minWait: 3s }}").expect("written");
    let path = on_disk.path().to_str().expect("UTF-8");
    let config = load(&Arguments::default(), pairs(&[(FILE_VARIABLE, path)])).expect("valid");
    assert_eq!(config.drain.min_wait, Duration::from_secs(3));
    assert_eq!(load(&Arguments::default(), pairs(&[(FILE_VARIABLE, "")])).expect("unset"), Config::default());
}

#[test]
fn every_kind_of_value_is_read() {
    let config = file(
        "listeners: { watch: [80, '443', 8443/tcp], exclude: [9090], ignoreSources: [192.0.2.0/24, 2001:db8::/32] }\n\
         drain: { maxWait: 1m30s, exitAtConnections: 5 }\n\
         sensor: { strategy: counters, reattach: false }\n\
         server: { address: '127.0.0.1:9', socket: '' }\n\
         log: { level: 'warn,lastsyn::sensor=debug', format: text }\n",
    )
    .expect("valid");
    assert_eq!(ports(&config.listeners.watch), [80, 443, 8443]);
    let ignored: Vec<_> = config.listeners.ignore_sources.iter().map(Network::to_string).collect();
    assert_eq!(ignored, ["192.0.2.0/24", "2001:db8::/32"]);
    assert_eq!(config.drain.max_wait, MaxWait::Fixed(Duration::from_secs(90)));
    assert_eq!(config.drain.exit_at_connections, Some(5));
    assert_eq!((config.sensor.strategy, config.sensor.reattach), (SensorStrategy::Counters, false));
    assert_eq!(config.server.address, SocketAddr::from(([127, 0, 0, 1], 9)));
    assert_eq!(config.server.socket, None);
    assert_eq!(config.log.format, LogFormat::Text);
}

#[test]
fn the_values_of_variables_and_flags_are_read_as_yaml() {
    for text in ["[80, 443]", "80,443", " 80 , 443 ", "[\"80\", 443/tcp]", "- 80\n- 443"] {
        assert_eq!(ports(&variable("LASTSYN_LISTENERS_WATCH", text).expect(text).listeners.watch), [80, 443], "{text}");
        assert_eq!(ports(&flag("listeners.watch", text).expect(text).listeners.watch), [80, 443], "{text}");
    }
    assert_eq!(ports(&variable("LASTSYN_LISTENERS_WATCH", "80").expect("one").listeners.watch), [80]);
    assert_eq!(variable("LASTSYN_LISTENERS_WATCH", "auto").expect("auto"), Config::default());
    assert_eq!(flag("server.socket", "").expect("none").server.socket, None);
    assert_eq!(flag("server.address", "[::1]:7").expect("IPv6").server.address.port(), 7);
    assert_eq!(flag("drain.exit-at-connections", "3").expect("3").drain.exit_at_connections, Some(3));
    assert_eq!(flag("drain.exit-at-connections", "null").expect("null").drain.exit_at_connections, None);
}

#[test]
fn networks_to_ignore_are_read_from_variables_and_flags_and_not_too_many() {
    for text in ["192.0.2.0/24,2001:db8::/32", "[192.0.2.0/24, '2001:db8::/32']"] {
        let config = variable("LASTSYN_LISTENERS_IGNORE_SOURCES", text).expect(text);
        assert_eq!(config, flag("listeners.ignore-sources", text).expect(text));
        assert_eq!(config.listeners.ignore_sources.len(), 2, "{text}");
    }
    refused(flag("listeners.ignore-sources", "192.0.2.7/24"), &["listeners.ignoreSources", "192.0.2.0/24?"]);
    refused(flag("listeners.ignore-sources", "0.0.0.0/0"), &["--listeners.ignore-sources", "every address"]);
    let networks = |count: u32| (0..count).map(|number| format!("10.0.{}.{}", number / 256, number % 256));
    let list = |count| networks(count).collect::<Vec<_>>().join(",");
    assert_eq!(flag("listeners.ignore-sources", &list(256)).expect("256").listeners.ignore_sources.len(), 256);
    refused(flag("listeners.ignore-sources", &list(257)), &["listeners.ignoreSources", "257", "256"]);
}

#[test]
fn probed_ports_are_read_from_variables_and_flags_and_not_too_many() {
    let text = "[{port: 8080, period: 1s}, 81]";
    let config = variable("LASTSYN_LISTENERS_PROBES", text).expect(text);
    assert_eq!(config, flag("listeners.probes", text).expect(text));
    let listed: Vec<_> =
        config.listeners.probes.listed().iter().map(|probe| (probe.port.number(), probe.period)).collect();
    assert_eq!(listed, [(8080, Duration::from_secs(1)), (81, Duration::from_secs(10))]);
    assert_eq!(flag("listeners.probes", "off").expect("off").listeners.probes, Probes::Off);
    assert_eq!(flag("listeners.probes", "auto").expect("auto"), Config::default());
    let list = |count: u16| format!("{:?}", (1..=count).collect::<Vec<_>>());
    assert_eq!(flag("listeners.probes", &list(32)).expect("32").listeners.probes.listed().len(), 32);
    refused(flag("listeners.probes", &list(33)), &["listeners.probes", "33", "32"]);
    refused(flag("listeners.probes", "[{port: 80, period: 5}]"), &["listeners.probes", "5s"]);
}

#[test]
fn unknown_keys_name_the_nearest() {
    refused(file("drain: { quitePeriod: 2s }"), &["drain.quitePeriod", "/etc/lastsyn.yaml", "drain.quietPeriod?"]);
    refused(file("quietPeriod: 2s"), &["quietPeriod", "drain.quietPeriod?"]);
    refused(file("drian: { quietPeriod: 2s }"), &["drian", "did you mean drain?"]);
    refused(
        variable("LASTSYN_DRAIN_QUITE_PERIOD", "2s"),
        &["LASTSYN_DRAIN_QUITE_PERIOD", "LASTSYN_DRAIN_QUIET_PERIOD?"],
    );
    refused(variable("LASTSYN_LOG", "debug"), &["LASTSYN_LOG_LEVEL?"]);
    refused(flag("drain.quiet", "2s"), &["--drain.quiet ", "--drain.quiet-period?"]);
}

#[test]
fn wrong_values_name_key_and_source() {
    let unit = "a duration needs a unit";
    refused(file("drain: { quietPeriod: 2 }"), &["drain.quietPeriod = 2", "file /etc/lastsyn.yaml", unit]);
    refused(variable("LASTSYN_DRAIN_MAX_WAIT", "25"), &["drain.maxWait = 25", "variable LASTSYN_DRAIN_MAX_WAIT", unit]);
    refused(flag("drain.min-wait", "1.5"), &["drain.minWait = 1.5", "flag --drain.min-wait", unit]);
    refused(flag("drain.min-wait", "-2s"), &["negative"]);
    refused(file("drain: { minWait: -2 }"), &["negative"]);
    refused(variable("LASTSYN_DRAIN_MIN_WAIT", ""), &["LASTSYN_DRAIN_MIN_WAIT", "duration"]);
    refused(file("drain: { minWait: [1s] }"), &["drain.minWait", "duration"]);
    refused(file("drain: { minWait: { a: 1s } }"), &["drain.minWait", "duration"]);
    refused(file("drain: { exitAtConnections: -1 }"), &["drain.exitAtConnections"]);
    refused(file("sensor: { strategy: tc }"), &["sensor.strategy = tc", "`tcx`", "`counters`"]);
    refused(file("sensor: { reattach: maybe }"), &["sensor.reattach"]);
    refused(file("server: { address: localhost }"), &["server.address = localhost"]);
    refused(flag("server.socket", &"x".repeat(108)), &["server.socket", "107"]);
    refused(flag("log.level", "inffo"), &["log.level = inffo", "info"]);
    refused(file("listeners: { watch: [80, 0] }"), &["listeners.watch", "port 0"]);
    refused(file("listeners: { watch: [80, 70000] }"), &["listeners.watch", "70000"]);
    refused(file("listeners: { watch: [80, 443/sctp] }"), &["listeners.watch", "443/sctp"]);
    refused(flag("listeners.watch", "80,443/sctp"), &["--listeners.watch", "443/sctp"]);
    refused(file("listeners: { exclude: [http] }"), &["listeners.exclude", "http"]);
    refused(file("listeners: { exclude: auto }"), &["listeners.exclude", "auto"]);
}

#[test]
fn one_server_in_the_pod_is_told() {
    let config = file(
        "proxy: { kind: http, http: { announce: { url: 'http://127.0.0.1:8080/drain', body: go }, \
         failReadiness: { method: PUT, url: 'http://[::1]:8080/x', status: 204 } } }\n\
         readiness: { failAfter: 40s, upstream: { web: 'http://127.0.0.1:8080/ready' } }\n\
         drain: { maxWait: 60s, restartGuard: 0s }\n",
    )
    .expect("valid");
    let announce = config.proxy.http.announce.clone().expect("a request");
    assert_eq!((announce.method.as_str(), announce.body.as_str(), announce.status), ("POST", "go", None));
    assert_eq!(config.proxy.http.fail_readiness.as_ref().and_then(|request| request.status), Some(204));
    assert_eq!(config.readiness.fail_after, FailAfter::Fixed(Duration::from_secs(40)));
    assert_eq!(config.readiness.upstream.keys().collect::<Vec<_>>(), ["web"]);
    assert!(config.tells_the_server() && config.drain.restart_guard.is_zero());

    let upstream = "{web: 'http://127.0.0.1:1/', api: 'http://10.0.0.1:2/x'}";
    let config = variable("LASTSYN_READINESS_UPSTREAM", upstream).expect("valid");
    assert_eq!(config, flag("readiness.upstream", upstream).expect("valid"));
    assert_eq!(config.readiness.upstream.len(), 2);
    assert!(config.tells_the_server() && !Config::default().tells_the_server());
    let envoy = |admin: &str| {
        let flags = pairs(&[("proxy.kind", "envoy"), ("proxy.envoy.admin", admin)]);
        assemble(None, &[], &flags).expect("valid").proxy.own_ports()
    };
    assert_eq!(envoy("127.0.0.1:19000"), [19000, 19001, 19003]);
    assert_eq!(envoy("[::1]:15000"), [15000]);
    assert_eq!(envoy("unix:/admin.sock"), [0; 0]);
}

#[test]
fn a_server_that_cannot_be_told_like_this_is_refused() {
    let two = "proxy: { kind: envoy, envoy: { admin: '127.0.0.1:1' }, haproxy: { socket: 'unix:/s' } }";
    let error =
        refused(file(two), &["proxy.haproxy.socket", "proxy.kind = envoy", "/etc/lastsyn.yaml", "take the one out"]);
    assert!(matches!(error, ConfigError::OtherProxy { block: "haproxy", .. }));
    refused(flag("proxy.envoy.admin", "127.0.0.1:1"), &["proxy.kind: envoy", "proxy.kind = none (the default)"]);
    let error = refused(flag("proxy.kind", "http"), &["proxy.kind = http", "announce", "failReadiness"]);
    assert!(matches!(error, ConfigError::NoRequest { .. }));
    refused(flag("proxy.kind", "nginx"), &["proxy.kind = nginx", "`none`", "`envoy`"]);
    let envoy = |key: &str, value: &str| assemble(None, &[], &pairs(&[("proxy.kind", "envoy"), (key, value)]));
    refused(envoy("proxy.envoy.admin", "localhost"), &["proxy.envoy.admin = localhost", "unix:PATH"]);
    let error = refused(envoy("listeners.watch", "80,19003"), &["port 19003 is the admin port", "proxy.envoy.admin"]);
    assert!(matches!(error, ConfigError::AdminPortWatched { .. }));
    let haproxy = |value: &str| {
        assemble(None, &[], &pairs(&[("proxy.kind", "haproxy"), ("proxy.haproxy.readiness-server", value)]))
    };
    assert!(haproxy("lastsyn/ready").is_ok());
    refused(haproxy("web; disable frontend web"), &["proxy.haproxy.readinessServer", "BACKEND/SERVER"]);
    let http = |request: &str| file(&format!("proxy: {{ kind: http, http: {{ announce: {request} }} }}"));
    refused(http("{ url: 'https://127.0.0.1/' }"), &["proxy.http.announce", "only http://"]);
    refused(http("{ url: 'http://server/' }"), &["proxy.http.announce", "names a host"]);
    refused(http("{ url: 'http://127.0.0.1/', method: BREW }"), &["proxy.http.announce", "GET, HEAD"]);
    refused(http("{ url: 'http://127.0.0.1/', status: 20 }"), &["proxy.http.announce", "100 to 599"]);
    refused(http("{ url: 'http://127.0.0.1/', statsu: 200 }"), &["proxy.http.announce", "statsu"]);
    refused(http("{ method: GET }"), &["proxy.http.announce", "url"]);

    refused(flag("readiness.fail-after", "40"), &["readiness.failAfter = 40", "a duration needs a unit"]);
    refused(flag("readiness.fail-after", "soon"), &["readiness.failAfter = soon", "duration"]);
    let upstream = |text: &str| flag("readiness.upstream", text);
    let error = refused(upstream("{Web/1: 'http://127.0.0.1:1/'}"), &["readiness.upstream", "Web/1", "lower-case"]);
    assert!(matches!(error, ConfigError::UpstreamName { .. }));
    let error = refused(upstream("{web: 'http://localhost:19480/ready/web'}"), &["web leads to the agent itself"]);
    assert!(matches!(error, ConfigError::UpstreamIsAgent { .. }));
    refused(upstream("{web: '/ready'}"), &["readiness.upstream", "is not a URL"]);
    refused(upstream("[web]"), &["readiness.upstream"]);
}

#[test]
fn files_that_are_none_say_why() {
    refused(file("- a\n- b\n"), &["/etc/lastsyn.yaml", "not a mapping"]);
    refused(file("drain: 5"), &["drain", "is a section", "drain.quietPeriod"]);
    let error = refused(file("drain:\n  minWait: 2s\n  quietPeriod: [1s\nlog: {}\n"), &["/etc/lastsyn.yaml:"]);
    assert!(matches!(error, ConfigError::Syntax { line: 3.., .. }), "{error:?}");
    refused(file("drain: { minWait: 1s, minWait: 2s }"), &["/etc/lastsyn.yaml:1:", "minWait"]);
    refused(file("a: 1\n---\nb: 2\n"), &["/etc/lastsyn.yaml"]);

    let read = |path: &Path| load(&Arguments { file: Some(path.to_owned()), values: vec![] }, []);
    refused(read(Path::new("/does/not/exist.yaml")), &["/does/not/exist.yaml", "--config", "No such file"]);
    let missing = load(&Arguments::default(), pairs(&[(FILE_VARIABLE, "/does/not/exist")]));
    refused(missing, &["/does/not/exist", FILE_VARIABLE]);
    let directory = tempfile::tempdir().expect("a directory");
    refused(read(directory.path()), &["directory"]);
    let path = directory.path().join("file");
    std::fs::write(&path, b"log: { level: \xff }").expect("written");
    refused(read(&path), &["not UTF-8 from byte 14"]);
    std::fs::write(&path, " ".repeat((1 << 20) + 1)).expect("written");
    refused(read(&path), &["more than 1048576 bytes"]);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let error = refused(file("listeners: { watch: [80, 443, 80] }"), &["listeners.watch", "port 80 is there twice"]);
    assert!(matches!(error, ConfigError::DuplicatePort { .. }));
    let error = refused(file("listeners: { exclude: [1, 1] }"), &["listeners.exclude"]);
    assert!(matches!(error, ConfigError::DuplicatePort { .. }));
    let error = refused(
        assemble(Some((Path::new("/f"), "listeners: { watch: [80] }")), &[], &pairs(&[("listeners.exclude", "80")])),
        &["port 80", "listeners.watch", "file /f", "listeners.exclude", "flag --listeners.exclude"],
    );
    assert!(matches!(error, ConfigError::WatchedAndExcluded { .. }));
    let error = refused(
        file("listeners: { watch: [80, 19480] }"),
        &["listeners.watch", "port 19480 is the agent's own", "server.address"],
    );
    assert!(matches!(error, ConfigError::OwnPortWatched { .. }));
    assert!(file("{ listeners: { watch: [19480] }, server: { address: '[::]:1' } }").is_ok());
    let error = refused(file("listeners: { watch: [] }"), &["listeners.watch"]);
    assert!(matches!(error, ConfigError::NothingWatched { .. }));
    let error = refused(file("drain: { quietPeriod: 0s }"), &["drain.quietPeriod"]);
    assert!(matches!(error, ConfigError::QuietPeriodZero { .. }));
    let alone = |drain: &str| file(&format!("{{ routing: {{ enabled: false }}, drain: {{ {drain} }} }}"));
    let error = refused(alone("quietPeriod: 21s"), &["drain.quietPeriod = 21s", "auto = 20s (the default)"]);
    assert!(matches!(error, ConfigError::QuietPeriodAboveMaxWait { .. }));
    let error = refused(file("drain: { minWait: 9s, maxWait: 8s }"), &["drain.minWait = 9s", "drain.maxWait = 8s"]);
    assert!(matches!(error, ConfigError::MinWaitAboveMaxWait { .. }));
    let error = refused(alone("stopReserve: 30s"), &["drain.stopReserve = 30s"]);
    assert!(matches!(error, ConfigError::NothingLeft { .. }));
    // The pod's grace period may be longer than the default: it is read only later.
    for fits in ["quietPeriod: 21s", "stopReserve: 30s", "minWait: 40s"] {
        assert!(file(&format!("drain: {{ {fits} }}")).is_ok(), "{fits}");
    }
    assert!(file("drain: { stopReserve: 30s, maxWait: 60s }").is_ok());
}

#[test]
fn what_is_odd_is_warned_of() {
    assert_eq!(Config::default().warnings(None), [""; 0]);
    let warnings = file("drain: { retryWait: 8s, maxWait: 5s }").expect("allowed").warnings(None);
    assert!(warnings.iter().any(|warning| warning.contains("retryWait")), "{warnings:?}");
    assert_eq!(flag("server.address", "127.0.0.1:0").expect("allowed").warnings(None).len(), 1);
    let warned = |text: &str, part: &str| {
        let warnings = file(text).expect("allowed").warnings(None);
        assert!(warnings.iter().any(|warning| warning.contains(part)), "{warnings:?}");
    };
    warned("drain: { stopReserve: 30s }", "until the pod's grace period has been read, drains last at most 15s");
    let reserving = file("drain: { stopReserve: 30s }").expect("allowed");
    assert_eq!(reserving.warnings(Some(Duration::from_mins(1))), [""; 0]);
    warned("readiness: { failAfter: 1s }", "readiness.failAfter is without effect");
    warned(
        "{ proxy: { kind: envoy }, readiness: { failAfter: 40s } }",
        "(40s) is longer than the bound of a drain (20s",
    );
    warned("proxy: { kind: haproxy }", "HAProxy is told nothing");
}

fn tree() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "[0-9]{0,3}(s|ms|m|/udp)?".prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
    ];
    let names = prop_oneof![
        3 => prop::sample::select(keys::all().iter().flat_map(|key| key.path().to_vec()).collect::<Vec<_>>()),
        1 => ".{0,8}",
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::hash_map(names.clone(), inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_tree_is_taken_or_refused(tree in tree()) {
        let text = tree.to_string();
        if let Ok(config) = file(&text) {
            prop_assert!(config.drain.quiet_period <= config.drain.bound());
            let again = serde_json::to_string(&config).expect("JSON");
            prop_assert_eq!(file(&again).expect("a configuration that was taken"), config);
        }
    }

    #[test]
    fn any_text_is_taken_or_refused(text in "(?s).{0,200}") {
        if let Err(error) = file(&text) {
prop_assert!(!error.to_string().is_empty());
}
    }

    #[test]
    fn any_value_is_taken_or_refused(at in 0..keys::all().len(), text in "(?s).{0,40}") {
        let key = &keys::all()[at];
        for result in [flag(key.flag(), &text), variable(key.variable(), &text)] {
            if let Err(error) = result {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn any_variable_is_taken_or_refused(name in "LASTSYN_[A-Z0-9_]{0,30}", text in ".{0,20}") {
        if let Err(error) = variable(&name, &text) {
prop_assert!(!error.to_string().is_empty());
}
    }
}
