//! Events on the agent's own pod (`events.k8s.io/v1`): what `kubectl describe pod` and event stores show of a drain. The pod's object
//! is gone a moment after its end, an Event stays for an hour. Nothing depends on them: what cannot be written is logged once.

use std::time::Duration;

use hyper::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::access::Access;
use crate::{
    config::Config,
    core::verdict::{Reason, Verdict},
};

/// Who reports. The API wants a qualified name.
const CONTROLLER: &str = "lastsyn/agent";

/// How long a note may be, in bytes (`pkg/apis/core/validation/events.go`).
const LONGEST_NOTE: usize = 1024;

/// How long the API server has for one try, and how often it is tried.
const PATIENCE: Duration = Duration::from_secs(2);
const TRIES: u32 = 3;

/// How long after a try that failed the next one comes.
const AGAIN: Duration = Duration::from_millis(500);

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    reason: &'static str,
    /// `Warning`, not `Normal`.
    warning: bool,
    note: String,
}

/// Tells Events, each in a task of its own.
pub struct PodEvents {
    access: Access,
    pod: Pod,
    tasks: JoinSet<()>,
}

/// The pod, by what Events name it by.
#[derive(Clone)]
struct Pod {
    namespace: String,
    name: String,
    uid: String,
}

impl Happening {
    /// A drain has begun.
    pub fn started(max_wait: &str) -> Self {
        let note = format!("The preStop hook is held until no new connection reaches the pod, for at most {max_wait}");
        Self { reason: "DrainStarted", warning: false, note }
    }

    /// It has ended. `words` tell how.
    pub fn ended(verdict: &Verdict, words: &str) -> Self {
        let (reason, warning) = match verdict.reason {
            Reason::RoutedAway => ("DrainRoutedAway", false),
            Reason::Synced => ("DrainSynced", false),
            Reason::Quiet => ("DrainQuiet", false),
            Reason::Unverified => ("DrainUnverified", true),
            Reason::Bound => ("DrainBound", true),
            Reason::NotTerminating => ("NotTerminating", false),
        };
        Self { reason, warning, note: shortened(words) }
    }

    /// A client was refused after the drain's end.
    pub fn late() -> Self {
        let note = "A connection was refused after the drain's end: it was too short for some client".to_owned();
        Self { reason: "LateConnections", warning: true, note }
    }
}

impl PodEvents {
    /// Where the operator wants them, and the pod is known and has a token.
    pub fn of(config: &Config) -> Option<Self> {
        if !config.report.events {
            return None;
        }
        let pod = &config.pod;
        let pod = Pod { namespace: pod.namespace.clone(), name: pod.name.clone(), uid: pod.uid.clone() };
        let known = ![&pod.namespace, &pod.name, &pod.uid].iter().any(|part| part.is_empty());
        // The fence shows pods what is in the API, and writes nothing for them.
        let Some(access) = Access::by_environment().filter(|_| known) else {
            tracing::warn!(
                "report.events is without effect: it takes a service account's token, and POD_NAME, POD_NAMESPACE and POD_UID by \
                 the downward API"
            );
            return None;
        };
        Some(Self { access, pod, tasks: JoinSet::new() })
    }

    /// Tells something, without waiting for it.
    pub fn tell(&mut self, happening: Happening) {
        // Those that are done.
        while self.tasks.try_join_next().is_some() {}
        let (access, pod) = (self.access.clone(), self.pod.clone());
        self.tasks.spawn(async move {
            let reason = happening.reason;
            if let Err(why) = written(&access, &pod, &happening).await {
                tracing::warn!(%why, reason, "the Event could not be written; it takes the right to create events.k8s.io events");
            }
        });
    }

    /// Waits for what is under way, but not for longer than this.
    pub async fn finish(&mut self, within: Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // What is not written by then is in the log as well.
        tokio::time::timeout(within, all).await.ok();
    }
}

async fn written(access: &Access, pod: &Pod, happening: &Happening) -> Result<(), String> {
    let event = event(pod, happening, &format!("{:016x}", fastrand::u64(..)), jiff::Timestamp::now());
    let mut tries = 1;
    loop {
        match once(access, pod, &event).await {
            Ok(()) => return Ok(()),
            // It is there: an earlier try's answer was lost.
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
            Err(error) if tries >= TRIES || is_refusal(&error) => return Err(error.to_string()),
            Err(_) => {
                tries += 1;
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Whether the same request would be refused again.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
}

async fn once(access: &Access, pod: &Pod, event: &Value) -> Result<(), kube::Error> {
    let client = access.client(PATIENCE).await.map_err(|error| kube::Error::Service(error.into()))?;
    post(&client, pod, event).await
}

async fn post(client: &Client, pod: &Pod, event: &Value) -> Result<(), kube::Error> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", pod.namespace);
    let request = Request::post(path).header("content-type", "application/json").body(event.to_string().into_bytes());
    let request = request.map_err(kube::Error::HttpError)?;
    let answer = tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await;
    answer.map_err(|elapsed| kube::Error::Service(elapsed.into()))?.map(drop)
}

/// The object. Its name is unique, and what makes it so comes from the caller.
fn event(pod: &Pod, happening: &Happening, unique: &str, now: jiff::Timestamp) -> Value {
    // A name has at most 253 characters.
    let name: String = pod.name.chars().take(200).collect();
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": format!("{name}.{unique}"), "namespace": pod.namespace},
        "eventTime": format!("{now:.6}"),
        "reportingController": CONTROLLER,
        "reportingInstance": pod.name.chars().take(128).collect::<String>(),
        "action": "Drain",
        "reason": happening.reason,
        "type": if happening.warning { "Warning" } else { "Normal" },
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
        "note": happening.note,
    })
}

/// As much of a text as a note can have.
fn shortened(text: &str) -> String {
    if text.len() <= LONGEST_NOTE {
        return text.to_owned();
    }
    let end = '…';
    let most = LONGEST_NOTE - end.len_utf8();
    let at = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= most).last().unwrap_or(0);
    text.chars().take(text.get(..at).map_or(0, |begin| begin.chars().count())).chain([end]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_never_longer_than_the_api_takes() {
        assert_eq!(shortened("short"), "short");
        for text in ["x".repeat(5000), "ü".repeat(5000), "x".repeat(1025)] {
            let note = shortened(&text);
            assert!(
                note.len() <= LONGEST_NOTE && note.len() > LONGEST_NOTE - 4 && note.ends_with('…'),
                "{}",
                note.len()
            );
        }
    }

    #[test]
    fn the_object_says_whose_it_is_and_has_microseconds() {
        let pod = Pod { namespace: "shop".to_owned(), name: "web-1".to_owned(), uid: "u".to_owned() };
        let now = "2026-11-29T20:44:09.5Z".parse().expect("a time");
        let event = event(&pod, &Happening::late(), "1", now);
        assert_eq!(event["eventTime"], "2026-11-29T20:44:09.500000Z");
        assert_eq!((&event["type"], &event["reason"]), (&"Warning".into(), &"LateConnections".into()));
        assert_eq!(event["regarding"]["uid"], "u");
    }
}
