//! The answers of a real kube-proxy.

use super::{super::*, *};

/// What is awaited of a capture.
#[derive(Debug, PartialEq, Eq)]
enum Is {
    /// A status, with each family's health.
    Status(bool, bool),
    JustStarted,
}

fn raw(capture: &str) -> Vec<u8> {
    let text = capture.replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").expect("a head and a body");
    format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n")).into_bytes()
}

macro_rules! capture {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../tests/captures/", $name, ".http")))
    };
}

#[tokio::test]
async fn c2_real_answers_are_read_whatever_their_status_code() {
    for ((name, text), is) in [
        (capture!("livez-healthy"), Is::Status(true, true)),
        (capture!("livez-healthy-over-ipv6"), Is::Status(true, true)),
        (capture!("livez-pending-10s"), Is::Status(true, true)),
        (capture!("livez-pending-over-60s"), Is::Status(false, true)),
        (capture!("livez-recovered"), Is::Status(true, true)),
        (capture!("livez-node-being-deleted"), Is::Status(true, true)),
        (capture!("healthz-healthy"), Is::Status(true, true)),
        (capture!("healthz-pending-over-60s"), Is::Status(false, true)),
        (capture!("healthz-node-being-deleted"), Is::Status(true, true)),
        (capture!("livez-first-answer"), Is::JustStarted),
        (capture!("livez-no-status"), Is::JustStarted),
    ] {
        let livez = name.starts_with("livez");
        let answer = raw(text);
        let server = Server::start(move |_, path| match path {
            "/livez" if livez => Does::Answers(answer.clone()),
            "/healthz" if !livez => Does::Answers(answer.clone()),
            _ => Does::Answers(http(404, "404 page not found\n")),
        })
        .await;
        let mut polled = poll_server(&server, LONG);
        for _ in 0..2 {
            let found = match polled.next().await.outcome {
                HealthOutcome::Status(status) => {
                    let healthy = |of: Option<crate::core::cluster::FamilyHealth>| of.expect(name).healthy;
                    Is::Status(healthy(status.v4), healthy(status.v6))
                }
                HealthOutcome::NoStatus(why) if why.contains("just started") => Is::JustStarted,
                // The capture's own `Connection: close` is kept.
                HealthOutcome::Broken if is == Is::JustStarted => continue,
                other => panic!("{name} is {other:?}"),
            };
            assert_eq!(found, is, "{name}");
        }
    }
}

#[tokio::test]
async fn a_stamp_is_read_to_the_nanosecond() {
    let (_, text) = capture!("livez-healthy");
    let answer = raw(text);
    let server = Server::start(move |_, _| Does::Answers(answer.clone())).await;
    let HealthOutcome::Status(status) = poll_server(&server, LONG).next().await.outcome else { panic!("a status") };
    let stamp = status.v4.expect("IPv4").last_updated;
    assert_eq!(stamp, crate::core::cluster::NodeTime(1_795_988_789_536_091_386));
}

#[tokio::test]
async fn c8_real_local_endpoints_are_read_whatever_their_status_code() {
    use crate::core::cluster::LocalEndpointsOutcome::Endpoints;
    for ((name, text), expected) in [
        (capture!("hcnp-1-local"), 1),
        (capture!("hcnp-1-local-ipv6"), 1),
        (capture!("hcnp-0-local-terminating"), 0),
        (capture!("hcnp-0-local-ipv6"), 0),
        (capture!("hcnp-proxy-unhealthy"), 1),
    ] {
        let answer = raw(text);
        let server = Server::start(move |_, _| Does::Answers(answer.clone())).await;
        let (sender, mut reports) = mpsc::channel(16);
        let service = crate::core::cluster::ServiceName("web-lb".to_owned());
        let manner = Manner { interval: Duration::from_millis(5), timeout: LONG };
        let task = tokio::spawn(poll_local(service, vec![server.address], manner, Arc::default(), sender));
        let (first, second) = (reports.recv().await.expect(name), reports.recv().await.expect(name));
        assert_eq!((first.outcome, second.outcome), (Endpoints(expected), Endpoints(expected)), "{name}");
        assert_eq!(first.connection, second.connection);
        task.abort();
    }
}
