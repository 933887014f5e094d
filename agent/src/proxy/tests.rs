//! Servers that answer wrongly, late, or not at all. What each adapter sends to a real one, and what comes of it, is shown
//! in the lab.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::config::{Envoy, HaProxy};

/// What a false server does with each connection.
#[derive(Clone, Copy)]
enum Manner {
    /// Reads the request and answers this, whatever was asked.
    Answers(&'static str),
    /// Reads and never answers.
    Hangs,
    /// Answers 200 with what is no text.
    Garbles,
    /// Answers without an end.
    Floods,
}

struct False {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

async fn server(manner: Manner) -> False {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let connections = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut head = [0; 2048];
                if stream.read(&mut head).await? == 0 {
                    return Ok(());
                }
                match manner {
                    Manner::Answers(text) => stream.write_all(text.as_bytes()).await,
                    Manner::Garbles => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\xff\xfe").await,
                    Manner::Hangs => std::future::pending().await,
                    Manner::Floods => loop {
                        stream.write_all(&[b'a'; 4096]).await?;
                    },
                }?;
                io::Result::Ok(())
            });
        }
    });
    False { address, connections }
}

fn envoy(address: SocketAddr) -> Server {
    Server::Envoy(Envoy { admin: Candidate::Tcp(address), inbound_only: false })
}

fn haproxy(address: SocketAddr) -> Server {
    let readiness_server = serde_json::from_str(r#""lastsyn/ready""#).expect("a name");
    Server::HaProxy(HaProxy { socket: Candidate::Tcp(address), readiness_server, ..HaProxy::default() })
}

fn http(address: SocketAddr) -> Server {
    let config = format!(
        r#"{{"announce": {{"url": "http://{address}/go", "status": 204}}, "failReadiness": null, "takeBack": null}}"#
    );
    Server::Http(Box::new(serde_json::from_str(&config).expect("a configuration")))
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test)
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nOK\n";
const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
const BROKEN: &str = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops";
const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

#[test]
fn only_what_the_server_itself_says_counts_as_done() {
    run(async {
        for (manner, what, temporary) in [
            (Manner::Answers(BROKEN), r#"with 500 Internal Server Error ("oops")"#, true),
            (Manner::Answers(NOT_FOUND), "with 404", false),
            (Manner::Answers(HELLO), r#"something else than Envoy's admin interface does ("hello")"#, false),
            (Manner::Garbles, "something else than Envoy's admin interface", false),
            (Manner::Answers("SSH-2.0-OpenSSH\r\n"), "no whole HTTP answer", true),
            (Manner::Answers("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nOK\n"), "no whole HTTP answer", true),
            (Manner::Floods, "no whole HTTP answer", true),
        ] {
            let server = server(manner).await;
            let error = envoy(server.address).tell(Phase::Announce).await.expect_err(what);
            let text = error.to_string();
            assert!(text.contains(what) && text.contains(&server.address.to_string()), "{text}");
            assert_eq!(error.is_temporary(), temporary, "{text}");
            assert!(envoy(server.address).view().await.is_err(), "{text}");
        }
        let right = server(Manner::Answers(OK)).await;
        envoy(right.address).tell(Phase::FailReadiness).await.expect("done");

        let error = http(right.address).tell(Phase::Announce).await.expect_err("204 is awaited").to_string();
        assert!(error.contains("POST /go with 200"), "{error}");
        let right = server(Manner::Answers("HTTP/1.1 204 No Content\r\n\r\n")).await;
        http(right.address).tell(Phase::Announce).await.expect("done");
    });
}

#[test]
fn haproxy_says_nothing_where_it_has_done_it() {
    run(async {
        let silent = server(Manner::Answers("")).await;
        let error = haproxy(silent.address).tell(Phase::FailReadiness).await.expect_err("no answer is no consent");
        assert!(error.is_temporary(), "{error}");
        for (manner, what) in [
            (Manner::Answers("No such server.\n\n"), "answered `disable server lastsyn/ready`: No such server."),
            (Manner::Answers("Permission denied\n\n"), "Permission denied"),
            (Manner::Floods, "longer than"),
        ] {
            let server = server(manner).await;
            let text = haproxy(server.address).tell(Phase::FailReadiness).await.expect_err(what).to_string();
            assert!(text.contains(what), "{text}");
            let text = haproxy(server.address).view().await.expect_err(what).to_string();
            assert!(text.contains("runtime socket"), "{text}");
        }
        let missing = Server::HaProxy(HaProxy {
            socket: Candidate::Unix("/does/not/exist.sock".into()),
            readiness_server: serde_json::from_str(r#""a/b""#).expect("a name"),
            ..HaProxy::default()
        });
        let text = missing.tell(Phase::FailReadiness).await.expect_err("nothing there").to_string();
        assert!(text.contains("unix:/does/not/exist.sock") && text.contains("stats socket"), "{text}");
    });
}

#[test]
fn what_may_pass_is_tried_a_few_times_and_what_may_not_once() {
    run(async {
        let broken = server(Manner::Answers(BROKEN)).await;
        let mut teller = Teller::start(envoy(broken.address));
        teller.tell(Phase::Announce);
        let (phase, outcome) = teller.next().await;
        assert_eq!(phase, Phase::Announce);
        let why = outcome.expect_err("500");
        assert!(why.contains("(4 tries)"), "{why}");
        assert_eq!(broken.connections.load(Ordering::Relaxed), 4);

        let wrong = server(Manner::Answers(NOT_FOUND)).await;
        let mut teller = Teller::start(envoy(wrong.address));
        teller.tell(Phase::Announce);
        teller.next().await.1.expect_err("404");
        assert_eq!(wrong.connections.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_server_that_hangs_keeps_no_newer_order_waiting_for_more_than_a_try() {
    run(async {
        let hanging = server(Manner::Hangs).await;
        let mut teller = Teller::start(envoy(hanging.address));
        teller.tell(Phase::Announce);
        teller.tell(Phase::FailReadiness);
        let (phase, outcome) = teller.next().await;
        assert_eq!(phase, Phase::Announce);
        let why = outcome.expect_err("no answer");
        assert!(why.contains("no answer within 2 s") && !why.contains("tries"), "{why}");
        assert_eq!(hanging.connections.load(Ordering::Relaxed), 1, "nothing newer waits while it is tried again");
    });
}

#[test]
fn a_server_of_whom_nothing_is_asked_is_told_nothing() {
    assert!(!Server::Silent.hears(Phase::FailReadiness));
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    assert!(http(address).hears(Phase::Announce) && !http(address).hears(Phase::FailReadiness));
    assert!(haproxy(address).hears(Phase::FailReadiness) && !haproxy(address).hears(Phase::Announce));
    run(async {
        // Nobody listens there: asking would fail.
        http(address).tell(Phase::TakeBack).await.expect("nothing to do");
    });
}
