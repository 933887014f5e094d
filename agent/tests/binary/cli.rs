//! The binary as others call it: what it prints, and the code it ends with.

use crate::answering::{absent, agent, answer};
use crate::running::lastsyn;

fn refused(arguments: &[&str], variables: &[(&str, &str)], code: i32, names: &[&str]) {
    let ended = lastsyn(arguments, variables);
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    for name in names {
        assert!(ended.stderr.contains(name), "{:?} does not name {name:?}", ended.stderr);
    }
}

// === configuration and usage ===

#[test]
fn help_and_version_go_to_standard_output() {
    for arguments in [
        ["--help", ""],
        ["run", "--help"],
        ["drain", "--help"],
        ["status", "--help"],
        ["check", "--help"],
        ["inject", "--help"],
    ] {
        let arguments: Vec<_> = arguments.into_iter().filter(|argument| !argument.is_empty()).collect();
        let ended = lastsyn(&arguments, &[]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(ended.stdout.contains("2  wrong arguments or configuration"), "{}", ended.stdout);
    }
    let version = lastsyn(&["--version"], &[]);
    assert_eq!((version.code, version.stdout.trim()), (Some(0), concat!("lastsyn ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn wrong_arguments_end_with_2_and_say_what() {
    refused(&[], &[], 2, &["Usage"]);
    refused(&["drian"], &[], 2, &["drian", "drain"]);
    for command in ["run", "check"] {
        refused(&[command, "--drain.quiet", "2s"], &[], 2, &["--drain.quiet", "--drain.quiet-period"]);
        refused(&[command, "--drain.quiet-period", "2"], &[], 2, &["flag --drain.quiet-period", "unit"]);
        refused(&[command, "--drain.quiet-period=-2s"], &[], 2, &["negative"]);
        refused(&[command, "--drain.quiet-period", "-2s"], &[], 2, &["negative"]);
        refused(&[command, "--listeners.watch", "80,0"], &[], 2, &["port 0"]);
        refused(&[command, "--listeners.watch", "[80, 443, 80]"], &[], 2, &["port 80 is there twice"]);
        refused(&[command, "--listeners.watch", "443/sctp"], &[], 2, &["443/sctp"]);
        refused(
            &[command, "--routing.enabled", "false", "--drain.quiet-period", "40s"],
            &[],
            2,
            &["drain.quietPeriod = 40s", "drain.maxWait = auto"],
        );
        refused(&[command, "--config", "/does/not/exist"], &[], 2, &["/does/not/exist", "No such file"]);
        refused(&[command], &[("LASTSYN_CONFIG", "/does/not/exist")], 2, &["LASTSYN_CONFIG"]);
        refused(&[command], &[("LASTSYN_DRAIN_MAXWAIT", "2s")], 2, &["LASTSYN_DRAIN_MAX_WAIT?"]);
        refused(&[command], &[("LASTSYN_LOG_LEVEL", "loud")], 2, &["LASTSYN_LOG_LEVEL", "loud"]);
    }
}

#[test]
fn a_wrong_file_ends_with_2_and_says_where() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lastsyn.yaml");
    let path = path.to_str().expect("UTF-8");
    for (text, names) in [
        ("drain: { quitePeriod: 2s }", ["drain.quitePeriod", "drain.quietPeriod?"]),
        ("drain:\n  quietPeriod: [2s\n", ["lastsyn.yaml:", ""]),
        ("drain: { quietPeriod: 2 }", ["drain.quietPeriod = 2", "unit"]),
        ("listeners: { watch: [0] }", ["listeners.watch", "port 0"]),
    ] {
        std::fs::write(path, text).expect("written");
        refused(&["check", "--config", path], &[], 2, &names);
    }
}

#[test]
fn the_variables_of_services_are_no_mistake() {
    let services = [
        ("LASTSYN_FENCE_SERVICE_HOST", "10.96.0.7"),
        ("LASTSYN_FENCE_PORT_19481_TCP_ADDR", "10.96.0.7"),
        ("LASTSYN_PORT", "tcp://10.96.0.7:19480"),
    ];
    // The configuration is read in the order of the sources: the flag's mistake is found only past the variables.
    let ended = lastsyn(&["check", "--drain.min-wait", "soon"], &services);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("soon") && !ended.stderr.contains("LASTSYN_"), "{}", ended.stderr);
}

// === status ===

#[test]
fn status_without_an_agent_fails_and_says_where_it_looked() {
    let absent = absent().to_string();
    refused(&["status", "--agent", &absent], &[], 1, &[&absent, "refused", "is it running"]);
    refused(&["status", "--agent", "nowhere"], &[], 2, &["nowhere", "unix:PATH"]);
    refused(&["status", "--agent", &agent(|stream| answer(stream, "200 OK", "{}"))], &[], 1, &["not a status"]);
    refused(&["status", "--agent", &agent(|stream| answer(stream, "403 Forbidden", ""))], &[], 1, &["403"]);
}

#[test]
fn status_passes_the_answer_on_as_it_came() {
    let body = r#"{"version":"9","of":"another version"}"#;
    let ended = lastsyn(&["status", "--json", "--agent", &agent(move |stream| answer(stream, "200 OK", body))], &[]);
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), body));
}

#[test]
fn check_says_what_to_do_about_each_line() {
    let ended = lastsyn(&["check", "--server.address", &absent().to_string()], &[]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for line in ["kernel", "capabilities", "tcx", "counters", "interfaces", "listeners", "grace", "hook"] {
        assert!(ended.stdout.lines().any(|shown| shown.contains(line)), "no line on {line}: {}", ended.stdout);
    }

    let stranger = agent(|stream| answer(stream, "200 OK", "{}"));
    let ended = lastsyn(&["check", "--server.address", &stranger], &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let complaint = format!("FAIL  agent         {stranger} is in use, and not by an agent");
    assert!(ended.stdout.contains(&complaint) && ended.stdout.contains("-> set server.address"), "{}", ended.stdout);
}
