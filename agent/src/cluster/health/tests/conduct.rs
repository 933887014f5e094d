//! How the poller goes about it: one connection, whose end is told; nobody hangs for another.

use super::{super::*, *};

#[tokio::test]
async fn c1_one_connection_is_kept_and_its_end_is_told_between_two_requests() {
    let mut server = Server::start(|_, _| Does::Answers(http(200, &status(29)))).await;
    let mut polled = poll_server(&server, LONG);
    let first = polled.next().await;
    for _ in 0..5 {
        let report = polled.next().await;
        assert!(is_status(&report.outcome), "{report:?}");
        assert_eq!(report.connection, first.connection);
        assert!(report.sent_at > first.sent_at && report.received_at >= report.sent_at);
    }
    assert_eq!(server.requests.recv().await, Some((0, "/livez".to_owned())));
    // No request is wanted any more: that the process goes is told all the same.
    polled.wanted.send_replace(Wanted::No);
    server.stop().await;
    loop {
        let report = polled.next().await;
        if report.outcome == HealthOutcome::Broken {
            assert_eq!(report.connection, first.connection);
            break;
        }
        assert!(is_status(&report.outcome), "{report:?}");
    }
}

#[tokio::test]
async fn c1_every_connection_has_a_greater_number() {
    let server = Server::start(|_, _| Does::AnswersAndCloses(http(200, &status(29)))).await;
    let mut polled = poll_server(&server, LONG);
    let mut last = None;
    for _ in 0..3 {
        let status = polled.next().await;
        assert!(is_status(&status.outcome), "{status:?}");
        assert!(last < Some(status.connection), "{status:?} after {last:?}");
        last = Some(status.connection);
        let end = polled.next().await;
        assert_eq!((end.outcome, Some(end.connection)), (HealthOutcome::Broken, last));
    }
}

#[tokio::test]
async fn where_there_is_no_livez_healthz_is_asked_over_the_same_connection() {
    let mut server = Server::start(|_, path| match path {
        "/healthz" => Does::Answers(http(200, &status(29))),
        _ => Does::Answers(http(404, "no")),
    })
    .await;
    let mut polled = poll_server(&server, LONG);
    let (first, second) = (polled.next().await, polled.next().await);
    assert!(is_status(&first.outcome) && is_status(&second.outcome));
    assert_eq!(first.connection, second.connection);
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(server.requests.recv().await.expect("a request"));
    }
    assert_eq!(asked, [(0, "/livez".to_owned()), (0, "/healthz".to_owned()), (0, "/healthz".to_owned())]);
    drop(polled);

    let neither = Server::start(|_, _| Does::Answers(http(404, "no"))).await;
    let report = poll_server(&neither, LONG).next().await;
    assert!(matches!(&report.outcome, HealthOutcome::NoStatus(why) if why.contains("404")), "{report:?}");
}

#[tokio::test]
async fn nobody_listens() {
    let mut server = Server::start(|_, _| Does::Hangs).await;
    server.stop().await;
    let mut polled = poll_server(&server, LONG);
    let (first, second) = (polled.next().await, polled.next().await);
    assert_eq!((first.outcome, second.outcome), (HealthOutcome::Refused, HealthOutcome::Refused));
    assert!(first.connection < second.connection);
}

#[tokio::test]
async fn a_server_that_hangs_is_told_of_again_and_again_and_its_late_answer_is_that_to_the_old_request() {
    let notify = Arc::new(tokio::sync::Notify::new());
    let waits = Arc::clone(&notify);
    let mut server = Server::start(move |_, _| Does::AnswersWhenTold(Arc::clone(&waits), http(200, &status(29)))).await;
    let mut polled = poll_server(&server, SHORT);
    let (first, second) = (polled.next().await, polled.next().await);
    assert_eq!((&first.outcome, &second.outcome), (&HealthOutcome::TimedOut, &HealthOutcome::TimedOut));
    assert_eq!((first.connection, first.sent_at), (second.connection, second.sent_at));
    notify.notify_one();
    let late = loop {
        let report = polled.next().await;
        if report.outcome != HealthOutcome::TimedOut {
            break report;
        }
    };
    assert!(is_status(&late.outcome), "{late:?}");
    assert_eq!((late.connection, late.sent_at), (first.connection, first.sent_at));
    server.requests.recv().await.expect("the first request");
    assert!(late.received_at > second.received_at);
}

#[tokio::test]
async fn a_node_that_hangs_holds_nobody_else_s_turn() {
    let (hangs, answers) =
        (Server::start(|_, _| Does::Hangs).await, Server::start(|_, _| Does::Answers(http(200, &status(29)))).await);
    let (rate, connections) = (Arc::new(Rate::new(10_000)), Arc::<Connections>::default());
    let (sender, mut reports) = mpsc::channel(1024);
    let (_wanted, receiver) = watch::channel(Wanted::Yes { since: crate::drive::clock::now(), due: None });
    let mut tasks = JoinSet::new();
    let servers = [&hangs, &hangs, &hangs, &answers];
    for (number, server) in servers.iter().enumerate() {
        let target = Target {
            node: NodeName(number.to_string()),
            addresses: vec![server.address.ip()],
            port: server.address.port(),
            manner: Manner { interval: Duration::from_millis(5), timeout: LONG },
            connections: Arc::clone(&connections),
            rate: Arc::clone(&rate),
        };
        tasks.spawn(poll(target, receiver.clone(), sender.clone()));
    }
    for _ in 0..10 {
        let report = tokio::time::timeout(DEADLINE, reports.recv()).await.expect("in time").expect("it goes on");
        assert_eq!(report.node.0, "3");
    }
}

#[tokio::test]
async fn a_node_s_other_address_is_tried() {
    let server = Server::start(|_, _| Does::Answers(http(200, &status(29)))).await;
    let mut polled = start(vec!["::1".parse().expect("IPv6"), server.address.ip()], server.address.port(), LONG);
    let report = polled.next().await;
    assert!(is_status(&report.outcome), "{report:?}");
    let mut none = start(Vec::new(), 1, LONG);
    let report = none.next().await;
    assert!(matches!(&report.outcome, HealthOutcome::NoStatus(why) if why.contains("InternalIP")), "{report:?}");
}

#[tokio::test]
async fn nobody_is_asked_who_is_not_wanted() {
    let mut server = Server::start(|_, _| Does::Answers(http(200, &status(29)))).await;
    let mut polled = poll_server(&server, LONG);
    polled.next().await;
    polled.wanted.send_replace(Wanted::No);
    // What is on its way arrives; then the server hears nothing of this poller while another is answered 20 times.
    let mut other = poll_server(&server, LONG);
    for _ in 0..20 {
        other.next().await;
    }
    let mut of_first = 0;
    while let Ok((connection, _)) = server.requests.try_recv() {
        of_first += usize::from(connection == 0);
    }
    assert!(of_first <= 2, "{of_first} requests");
    polled.wanted.send_replace(WANTED);
    while polled.reports.try_recv().is_ok() {}
    polled.next().await;
}
