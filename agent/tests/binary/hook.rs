//! How long the exec hook holds, and with which code it ends.
//!
//! The agents here are sockets on loopback that answer as an agent should not. What is asserted of a hold is that it was
//! never shorter than its bound; the deadlines above are wide, and only catch a hook that hangs.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixListener,
    process::Command,
    thread,
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    answering::{absent, agent, answer, serve},
    running::{Ended, lastsyn},
};

const BOUND: Duration = Duration::from_millis(700);
/// How late a hook may be on a machine that does much else.
const LATE: Duration = Duration::from_secs(4);

const VERDICT: &str = r#"{"reason":"quiet","startedAt":"2026-11-29T20:44:09.678872Z","durationMs":300,
    "heldBy":{"quietMs":300},"listeners":[],"assumes":[],"notObserved":[],
    "sensor":{"strategy":"tcx","healthy":true},"fromTheFuture":[1]}"#;

/// Holds the connection open until the hook has gone.
fn hang(mut stream: TcpStream) {
    drop(stream.read(&mut [0]));
}

fn drain(agents: &[&str], more: &[&str]) -> Ended {
    let bound = format!("{}ms", BOUND.as_millis());
    let agents = agents.iter().flat_map(|agent| ["--agent", agent]);
    let arguments: Vec<_> =
        ["drain", "--max-wait", &bound].into_iter().chain(agents).chain(more.iter().copied()).collect();
    lastsyn(&arguments, &[])
}

/// A name, where the agent is, and whether it takes connections.
type Case = (&'static str, String, bool);

fn all_hold(cases: &[Case]) {
    thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| holds(case));
        }
    });
}

/// The hook holds to its bound and ends well; with `--strict` it ends with the code for what it saw.
fn holds((case, agent, reached): &Case) {
    let ended = drain(&[agent], &["--json"]);
    assert!(ended.took >= BOUND, "{case}: let go after {:?}: {}", ended.took, ended.stdout);
    assert_eq!(ended.code, Some(0), "{case}: {}", ended.stderr);
    let verdict: serde_json::Value = serde_json::from_str(&ended.stdout).expect("one JSON object");
    assert_eq!((&verdict["reason"], &verdict["by"]), (&"bound".into(), &"hook".into()), "{case}");
    assert_eq!(verdict["agent"]["reached"], *reached, "{case}: {verdict}");
    assert!(verdict["agent"]["lastSeen"][0].as_str().is_some_and(|seen| seen.starts_with(agent)), "{case}: {verdict}");
    assert_eq!(verdict["notObserved"][0]["what"], "agent", "{case}");
    assert!(
        verdict["durationMs"].as_u64().is_some_and(|took| u128::from(took) >= BOUND.as_millis()),
        "{case}: {verdict}"
    );

    let ended = drain(&[agent], &["--strict"]);
    assert!(ended.took >= BOUND, "{case}: let go after {:?}", ended.took);
    assert!(ended.took < BOUND + LATE, "{case}: held for {:?}", ended.took);
    assert_eq!(ended.code, Some(if *reached { 3 } else { 4 }), "{case}: {}", ended.stderr);
    assert!(ended.stdout.contains("without a verdict"), "{case}: {}", ended.stdout);
}

#[test]
fn without_an_answer_it_holds() {
    all_hold(&[
        ("absent", absent().to_string(), false),
        ("no socket", "unix:/does/not/exist".to_owned(), false),
        ("closes at once", agent(drop), true),
        ("never answers", agent(hang), true),
    ]);
}

#[test]
fn an_answer_that_is_no_verdict_does_not_end_the_hold() {
    let mut cases = vec![
        ("not HTTP", agent(|mut stream| drop(stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"))), true),
        // Something in between may have put it there.
        ("503 with a verdict", agent(|stream| answer(stream, "503 Busy", VERDICT)), true),
        ("two verdicts", agent(|stream| answer(stream, "200 OK", &format!("{VERDICT}{VERDICT}"))), true),
    ];
    for status in ["204 No Content", "302 Found", "403 Forbidden", "404 Not Found", "500 Oops", "503 Busy"] {
        cases.push((status, agent(move |stream| answer(stream, status, "")), true));
    }
    for body in [
        "",
        "ok",
        "{}",
        "null",
        r#"{"reason":"quiet"}"#,
        r#"{"durationMs":300}"#,
        r#"{"reason":1,"durationMs":300}"#,
        r#"{"reason":"quiet","durationMs":"300"}"#,
        r#"["quiet",300]"#,
        "{\"reason\":\u{0}",
    ] {
        cases.push((body, agent(move |stream| answer(stream, "200 OK", body)), true));
    }
    all_hold(&cases);
}

#[test]
fn an_answer_that_breaks_off_is_no_verdict() {
    let half = |mut stream: TcpStream| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", VERDICT.len() + 1);
        drop(stream.write_all(format!("{head}{VERDICT}").as_bytes()));
        drop(stream.shutdown(Shutdown::Both));
    };
    let head = |mut stream: TcpStream| drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le"));
    let stalls = |mut stream: TcpStream| {
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"));
        hang(stream);
    };
    all_hold(&[
        ("dies within the body", agent(half), true),
        ("dies within the head", agent(head), true),
        ("stops within the body", agent(stalls), true),
    ]);
}

#[test]
fn an_answer_without_end_is_no_verdict() {
    let endless = |start: &'static [u8], more: &'static [u8]| {
        agent(move |mut stream| {
            let mut written = stream.write_all(start);
            while written.is_ok() {
                written = stream.write_all(more);
            }
        })
    };
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    all_hold(&[
        ("body", endless(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", &[b' '; 4096]), true),
        ("head", endless(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"), true),
        ("announcements", endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), true),
        ("chunks", endless(chunked, b"1\r\n \r\n"), true),
    ]);
}

#[test]
fn a_verdict_ends_the_hold() {
    let late = Duration::from_millis(300);
    let agent = agent(move |stream| {
        thread::park_timeout(late);
        answer(stream, "200 OK", VERDICT);
    });
    let ended = lastsyn(&["drain", "--agent", &agent, "--strict"], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.took >= late && ended.took < Duration::from_secs(20), "{:?}", ended.took);
    assert!(ended.stdout.starts_with("quiet after 0.3 s"), "{}", ended.stdout);
    assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (1, ""));

    let ended = lastsyn(&["drain", "--agent", &agent, "--json"], &[]);
    assert_eq!(ended.stdout.lines().count(), 1);
    let verdict: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&verdict["reason"], &verdict["fromTheFuture"][0]), (&"quiet".into(), &1.into()));
}

#[test]
fn a_verdict_that_claims_more_ends_the_hold_in_its_own_words() {
    for (reason, words) in [("routed-away", "routed away after 0.3 s"), ("synced", "synced after 0.3 s")] {
        let body = VERDICT.replace("\"quiet\"", &format!("\"{reason}\""));
        let agent = agent(move |stream| answer(stream, "200 OK", &body));
        let ended = drain(&[&agent], &["--strict"]);
        assert_eq!(ended.code, Some(0), "{reason}: {}", ended.stderr);
        assert!(ended.stdout.starts_with(words), "{}", ended.stdout);
    }
}

#[test]
fn a_verdict_of_another_version_ends_the_hold() {
    let holding = r#""holding":["mesh"],"listeners""#;
    let bodies = [
        ("rerouted", VERDICT.replace("\"quiet\"", "\"rerouted\"")),
        ("not-terminating", r#"{"reason":"not-terminating","durationMs":300}"#.to_owned()),
        ("quiet", VERDICT.replace("\"listeners\"", holding)),
        ("quiet", VERDICT.replace("\"tcx\"", "\"xdp\"")),
    ];
    for (reason, body) in bodies {
        let line: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        let agent = agent(move |stream| answer(stream, "200 OK", &body));
        let ended = drain(&[&agent], &["--strict"]);
        assert_eq!(ended.code, Some(0), "{reason}: {}", ended.stderr);
        assert!(
            ended.stdout.starts_with(&format!("{reason} after 0.3 s; the agent is of another version")),
            "{reason}"
        );
        let ended = drain(&[&agent], &["--json"]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&ended.stdout).expect("JSON"), line);
    }
    let bound = VERDICT.replace("\"quiet\"", "\"bound\"").replace("\"listeners\"", holding);
    let agent = agent(move |stream| answer(stream, "200 OK", &bound));
    assert_eq!(drain(&[&agent], &["--strict"]).code, Some(3), "a bound is one in every version");
}

#[test]
fn the_agents_own_bound_counts_as_one() {
    let bound = VERDICT.replace("quiet\"", "bound\"");
    let agent = agent(move |stream| answer(stream, "200 OK", &bound));
    assert_eq!(drain(&[&agent], &[]).code, Some(0));
    assert_eq!(drain(&[&agent], &["--strict"]).code, Some(3));
}

#[test]
fn an_agent_that_comes_late_is_found() {
    let address = absent();
    let hook = thread::spawn(move || lastsyn(&["drain", "--max-wait", "20s", "--agent", &address.to_string()], &[]));
    thread::park_timeout(Duration::from_millis(300));
    serve(TcpListener::bind(address).expect("still free"), |stream| answer(stream, "200 OK", VERDICT));
    let ended = hook.join().expect("it ends");
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.starts_with("quiet"), "{}", ended.stdout);
    assert!(ended.took < Duration::from_secs(18), "{:?}", ended.took);
    let said = ended.stderr.matches("holding the hook until 20s have passed").count();
    assert_eq!((said, ended.stderr.lines().count()), (1, 1), "{}", ended.stderr);
}

#[test]
fn every_place_is_asked_in_turn() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("hook.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 1024];
            let count = stream.read(&mut request).expect("a request");
            let request = String::from_utf8_lossy(&request[..count]).into_owned();
            let known = request.starts_with("POST /drain HTTP/1.1") && request.contains("lastsyn-max-wait-ms: ");
            let status = if known { "200 OK" } else { "400 Bad Request" };
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", VERDICT.len());
            stream.write_all(format!("{head}{VERDICT}").as_bytes()).expect("taken");
        }
    });
    let refusing = agent(|stream| answer(stream, "403 Forbidden", ""));
    let socket = format!("unix:{}", socket.display());
    let ended = lastsyn(&["drain", "--agent", &absent().to_string(), "--agent", &refusing, "--agent", &socket], &[]);
    assert!(ended.stdout.starts_with("quiet"), "{}", ended.stdout);

    let address = agent(|stream| answer(stream, "200 OK", VERDICT));
    let ended = lastsyn(&["drain"], &[("LASTSYN_SERVER_ADDRESS", &address), ("LASTSYN_SERVER_SOCKET", "")]);
    assert!(ended.stdout.starts_with("quiet"), "{}", ended.stdout);
}

#[test]
fn an_agent_that_dies_and_comes_back_is_asked_again() {
    let connections = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let agent = agent(move |stream| {
        if connections.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 1 {
            answer(stream, "200 OK", VERDICT);
        }
    });
    let ended = lastsyn(&["drain", "--max-wait", "20s", "--agent", &agent, "--strict"], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_wrong_argument_is_said_and_the_hook_holds_all_the_same() {
    let absent = absent().to_string();
    for (arguments, name) in [
        (&["--bogus"][..], "--bogus"),
        (&["--strictt"], "did you mean --strict?"),
        (&["--agent", "nowhere"], "nowhere"),
        (&["--max-wait", "10"], "unit"),
        (&["--json=1"], "takes no value"),
        (&["rest"], "rest"),
    ] {
        let ended = drain(&[&absent], arguments);
        assert!(ended.took >= BOUND, "{arguments:?}: let go after {:?}", ended.took);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(ended.stderr.contains(name) && ended.stderr.contains("holding all the same"), "{}", ended.stderr);
    }
    let ended = lastsyn(&["--bogus", "drain", "--max-wait", "700ms", "--agent", &absent], &[]);
    assert!(ended.took >= BOUND && ended.code == Some(2), "{:?} {:?}", ended.took, ended.code);
}

#[test]
fn a_hook_that_may_open_nothing_holds() {
    // Everything from "hardly enough to load the binary" to "enough": on the way there are libraries that panic.
    thread::scope(|scope| {
        for descriptors in 3..12 {
            scope.spawn(move || {
                let mut command = Command::new("prlimit");
                command.arg(format!("--nofile={descriptors}")).arg(env!("CARGO_BIN_EXE_lastsyn"));
                command.args(["drain", "--max-wait", "700ms", "--agent", &absent().to_string()]);
                let start = Instant::now();
                let ended = command.output().expect("prlimit starts");
                let said = String::from_utf8_lossy(&ended.stderr);
                if said.contains("shared libraries") {
                    return; // the binary never ran
                }
                assert!(start.elapsed() >= BOUND, "{descriptors}: let go after {:?}: {said}", start.elapsed());
                assert_eq!(ended.status.code(), Some(0), "{descriptors}: {said}");
            });
        }
    });
}

#[test]
fn a_value_in_front_of_the_word_does_not_hide_the_hook() {
    let ended = lastsyn(&["--max-wait", "700ms", "drain", "--agent", &absent().to_string()], &[]);
    assert!(ended.took >= BOUND && ended.code == Some(0), "{:?} {:?}: {}", ended.took, ended.code, ended.stderr);
}

#[test]
fn a_hook_that_nobody_listens_to_holds() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastsyn"));
    command.args(["drain", "--max-wait", "700ms", "--bogus", "--agent", &absent().to_string()]);
    let nobody = || std::io::pipe().map(|(_reader, writer)| writer).expect("a pipe");
    let start = Instant::now();
    let mut child = command.stdout(nobody()).stderr(nobody()).spawn().expect("the binary starts");
    let code = child.wait().expect("it ends").code();
    assert!(start.elapsed() >= BOUND, "{:?}", start.elapsed());
    assert_eq!(code, Some(2));
}
