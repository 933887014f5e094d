//! The agent's own pod, as a drain reads it: whether it is being deleted (S5), and the ways to it past its Services (W8).

use std::{collections::BTreeSet, time::Duration};

use kube::Client;
use tokio::sync::mpsc;

use super::{access::Access, convert::pod::OwnPod, mesh, observer::READ_PATIENCE, read, refusal::Refusal, sink::Sink};
use crate::core::{cluster::ClusterEvent, termination::PodRead, verdict::NotObserved};

/// Why a pod without a name is not read.
pub(super) const NO_NAME: &str = "the pod's name is not known: set LASTSYN_POD_NAME by the downward API";

/// How long after a read of the pod that failed the next is made.
const POD_AGAIN: Duration = Duration::from_millis(500);

/// Which pod is read, and who hears what it is like.
pub(super) struct ReadPod {
    pub(super) client: Client,
    pub(super) access: Access,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) own: mpsc::Sender<OwnPod>,
}

/// S5: what a read of it shows.
pub(super) async fn pod_outcome(
    client: &Client,
    access: &Access,
    namespace: &str,
    name: &str,
    uid: Option<&str>,
) -> PodRead {
    if name.is_empty() {
        return PodRead::Forbidden(NO_NAME.to_owned());
    }
    match read::pod(client, access, namespace, name, uid, READ_PATIENCE).await {
        Ok(shown) => shown.outcome,
        Err(Refusal::Denied(why)) => PodRead::Forbidden(why),
        Err(refusal) => PodRead::Failed(refusal.words().to_owned()),
    }
}

/// W8: tells of the ways to the pod that its own object shows; until that could be read, that nobody knows.
pub(super) async fn tell_of_pod(pod: ReadPod, sink: Sink) {
    let uid = Some(pod.uid.as_str()).filter(|uid| !uid.is_empty());
    if pod.name.is_empty() {
        drop(sink.tell(pod_unknown(NO_NAME)).await);
        return;
    }
    if sink.tell(pod_unknown("the pod could not be read in time")).await.is_err() {
        return;
    }
    loop {
        let read = read::pod(&pod.client, &pod.access, &pod.namespace, &pod.name, uid, READ_PATIENCE).await;
        let event = match read {
            Ok(shown) => {
                if let Some(own) = shown.own {
                    // A fault at the agent's start shall not have made this drain's bound a shorter one. If there is no
                    // room, the same waits there already.
                    drop(pod.own.try_send(own));
                }
                ClusterEvent::PodPaths(with_mesh(shown.paths))
            }
            Err(Refusal::Denied(why)) => pod_unknown(&why),
            Err(_) => {
                tokio::time::sleep(POD_AGAIN).await;
                continue;
            }
        };
        drop(sink.tell(event).await);
        return;
    }
}

/// W8: with the meshes that the pod's network shows and its object does not. The node's network says nothing of the pod.
pub(super) fn with_mesh(mut paths: Vec<NotObserved>) -> BTreeSet<NotObserved> {
    if !paths.iter().any(|path| path.what == "hostNetwork") {
        let found = mesh::of_listeners().into_iter();
        let known = |mesh: &NotObserved| paths.iter().any(|path| (&path.what, &path.name) == (&mesh.what, &mesh.name));
        let new: Vec<_> = found.filter(|mesh| !known(mesh)).collect();
        paths.extend(new);
        if !paths.iter().any(|path| path.what == "mesh") {
            paths.extend(mesh::of_netfilter());
        }
    }
    paths.into_iter().collect()
}

/// W8: nobody knows whether it can be reached past its Services.
pub(super) fn pod_unknown(why: &str) -> ClusterEvent {
    let why =
        format!("whether it has a hostPort, hostNetwork, or a load balancer's readiness gate is not known: {why}");
    ClusterEvent::PodPaths(BTreeSet::from([NotObserved { what: "pod".to_owned(), name: None, family: None, why }]))
}
