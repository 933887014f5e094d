//! A good answer, broken in every way that a network or another server may think of. None panics, each is what it should be.

use super::{super::*, *};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Status,
    NoStatus,
    Broken,
    TimedOut,
}

fn is(outcome: &HealthOutcome) -> Is {
    match outcome {
        HealthOutcome::Status(_) => Is::Status,
        HealthOutcome::NoStatus(_) => Is::NoStatus,
        HealthOutcome::Broken | HealthOutcome::Refused => Is::Broken,
        HealthOutcome::TimedOut => Is::TimedOut,
    }
}

fn mutations() -> Vec<(&'static str, Vec<u8>, bool, Is)> {
    let body = status(29);
    let good = http(200, &body);
    let text = String::from_utf8(good.clone()).expect("UTF-8");
    let with_head = |head: &str| format!("{head}\r\n\r\n{body}").into_bytes();
    let replaced = |from: &str, to: &str| http(200, &body.replace(from, to));
    let head_end = text.find("\r\n\r\n").expect("a head") + 4;
    let chunked =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let mut binary = good.clone();
    binary[head_end + 20] = 0xff;
    let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000).into_bytes();
    vec![
        // What is there, and whether the connection is closed behind it.
        ("good", good.clone(), false, Is::Status),
        ("code 503", http(503, &body), false, Is::Status),
        ("code 418", http(418, &body), false, Is::Status),
        ("chunked", chunked.into_bytes(), false, Is::Status),
        ("HTTP/1.0 up to the end", format!("HTTP/1.0 200 OK\r\n\r\n{body}").into_bytes(), true, Is::Status),
        (
            "one interim answer",
            [b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec(), good.clone()].concat(),
            false,
            Is::Status,
        ),
        ("unknown keys", replaced("\"status\"", "\"more\":[1,{}],\"status\""), false, Is::Status),
        ("spaces", http(200, &body.replace(',', " ,\n ")), false, Is::Status),
        ("one family", replaced("IPv6", "IPv5"), false, Is::Status),
        ("cut in the head", good[..20].to_vec(), true, Is::Broken),
        ("cut in the body", good[..good.len() - 10].to_vec(), true, Is::Broken),
        ("nothing", Vec::new(), true, Is::Broken),
        ("cut in the head and open", good[..20].to_vec(), false, Is::TimedOut),
        ("cut in the body and open", good[..good.len() - 1].to_vec(), false, Is::TimedOut),
        (
            "length too great",
            with_head(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}", body.len() + 1)),
            false,
            Is::TimedOut,
        ),
        ("length too small", with_head("HTTP/1.1 200 OK\r\nContent-Length: 7"), false, Is::NoStatus),
        ("length negative", with_head("HTTP/1.1 200 OK\r\nContent-Length: -1"), false, Is::NoStatus),
        ("two lengths", with_head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6"), false, Is::NoStatus),
        ("no HTTP", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), false, Is::NoStatus),
        ("a TLS alert", vec![0x15, 3, 1, 0, 2, 2, 70], true, Is::NoStatus),
        ("TLS by Go", http(400, "Client sent an HTTP request to an HTTPS server.\n"), true, Is::NoStatus),
        ("binary", binary, false, Is::NoStatus),
        ("cut JSON", http(200, &body[..body.len() - 5]), false, Is::NoStatus),
        ("a key twice", replaced("\"healthy\":true,\"status\"", "\"status\":{},\"status\""), false, Is::NoStatus),
        ("a list", http(200, "[]"), false, Is::NoStatus),
        ("deep", http(200, &"[".repeat(30_000)), false, Is::NoStatus),
        ("null", http(200, "null"), false, Is::NoStatus),
        ("an empty status", replaced("\"IPv4\"", "\"\"").into_iter().collect(), false, Is::Status),
        ("health in words", replaced("\"healthy\":true}", "\"healthy\":\"yes\"}"), false, Is::NoStatus),
        ("stamps in words", replaced("2026-11-29T21:46:29.5Z", "just now"), false, Is::NoStatus),
        (
            "Go's own times",
            replaced("2026-11-29T21:46:29.5Z", "2026-11-29 21:46:29.5 +0000 UTC m=+7.5"),
            false,
            Is::NoStatus,
        ),
        ("too long", http(200, &" ".repeat(LONGEST_BODY + 1)), false, Is::NoStatus),
        ("the longest", http(200, &format!("{body}{}", " ".repeat(LONGEST_BODY - body.len()))), false, Is::Status),
        ("a head without end", [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 100_000]].concat(), false, Is::NoStatus),
        ("interim answers without end", endless, false, Is::NoStatus),
    ]
}

#[tokio::test]
async fn every_mutation_of_an_answer_is_what_it_is() {
    assert!(mutations().len() > 30);
    for (name, answer, closes, expected) in mutations() {
        let server =
            Server::start(
                move |_, _| if closes { Does::AnswersAndCloses(answer.clone()) } else { Does::Answers(answer.clone()) },
            )
            .await;
        let patience = if expected == Is::TimedOut { SHORT } else { LONG };
        let report = poll_server(&server, patience).next().await;
        assert_eq!(is(&report.outcome), expected, "{name}: {:?}", report.outcome);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(100))]
    #[test]
    fn any_bytes_are_something(at in 0..400_usize, byte in 0..=255_u8, cut in 0..400_usize) {
        let mut answer = http(200, &status(29));
        if let Some(one) = answer.get_mut(at) {
            *one = byte;
        }
        answer.truncate(answer.len().saturating_sub(cut.saturating_sub(200)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = Server::start(move |_, _| Does::AnswersAndCloses(answer.clone())).await;
            poll_server(&server, LONG).next().await;
        });
    }
}
