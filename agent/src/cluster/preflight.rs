//! Tries what a drain will need of the cluster, once, and changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Duration,
};

use futures_util::{StreamExt, future::join_all, pin_mut};
use hyper::StatusCode;
use k8s_openapi::api::{
    core::v1::{Node as ApiNode, Service as ApiService},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Resource,
    api::{ListParams, WatchParams},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{
    access::{Access, AccessError, namespace},
    convert::{self, NodeTarget, pod::OwnPod},
    health::{Asked, connect, outcome},
    pod_in_drain::with_mesh,
    read,
    refusal::Refusal,
};
use crate::{
    config::{Pod, Routing, RoutingSource},
    core::{cluster::HealthOutcome, termination::PodRead, verdict::NotObserved},
};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many nodes are tried at the most.
const NODES: u32 = 50;

/// What came of one attempt: what was found, or why not; in words.
pub type Tried = Result<String, String>;

/// Everything that was tried.
#[derive(Clone, Debug)]
pub struct Preflight {
    /// List and watch of EndpointSlices.
    pub slices: Tried,
    /// List and watch of Services.
    pub services: Tried,
    /// List of nodes; `None` where the fence alone has it.
    pub nodes: Option<Tried>,
    /// Get of the own pod.
    pub pod: Tried,
    /// What it is like, where it may be read.
    pub own: Option<OwnPod>,
    /// W8: the ways to it past its Services, as far as it and its network show them.
    pub paths: BTreeSet<NotObserved>,
    /// The nodes' health servers: how many gave each answer, the most frequent first. Empty where no node is known.
    pub health: Vec<(usize, HealthAnswer)>,
}

/// What a node's health server does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthAnswer {
    /// It gives a status: its node can be confirmed.
    Status,
    /// It does not, and why; in words.
    Other(String),
}

/// Tries everything.
///
/// # Errors
/// If there is no client to try it with.
pub async fn preflight(access: &Access, pod: &Pod, routing: &Routing) -> Result<Preflight, AccessError> {
    let client = access.client(routing.poll.timeout).await?;
    let namespace = namespace(pod, &client);
    let slices = list_and_watch(Api::<EndpointSlice>::namespaced(client.clone(), &namespace));
    let services = list_and_watch(Api::<ApiService>::namespaced(client.clone(), &namespace));
    let own = async {
        if pod.name.is_empty() {
            return Err("its name is not known".to_owned());
        }
        let uid = Some(pod.uid.as_str()).filter(|uid| !uid.is_empty());
        match read::pod(&client, access, &namespace, &pod.name, uid, PATIENCE).await {
            Ok(shown) => {
                let state =
                    if shown.outcome == PodRead::NotTerminating { "" } else { ", and is terminating or not there" };
                Ok((format!("{namespace}/{} may be read{state}", pod.name), shown.own, shown.paths))
            }
            Err(refusal) => Err(refusal.words().to_owned()),
        }
    };
    let nodes = async {
        match routing.source {
            RoutingSource::Fence => None,
            RoutingSource::Api => Some(targets(Api::<ApiNode>::all(client.clone())).await),
        }
    };
    let (slices, services, own, targets) = tokio::join!(slices, services, own, nodes);
    let (nodes, health) = match targets {
        None => (None, Vec::new()),
        Some(Ok(targets)) => (Some(Ok(format!("{} nodes seen", targets.len()))), ask_all(&targets, routing).await),
        Some(Err(refusal)) => (Some(Err(refusal.words().to_owned())), Vec::new()),
    };
    let (pod, own, paths) = match own {
        Ok((found, own, paths)) => (Ok(found), own, paths),
        Err(why) => (Err(why), None, Vec::new()),
    };
    Ok(Preflight { slices, services, nodes, pod, own, paths: with_mesh(paths), health })
}

async fn list_and_watch<K>(api: Api<K>) -> Tried
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let late = || Refusal::timed_out().words().to_owned();
    let words = |error: &kube::Error| Refusal::from(error).words().to_owned();
    let page = ListParams::default().limit(1);
    let list = timeout(PATIENCE, api.list_metadata(&page)).await.map_err(|_elapsed| late())?;
    let list = list.map_err(|error| words(&error))?;
    let version = list.metadata.resource_version.unwrap_or_default();
    let briefly = WatchParams::default().timeout(1);
    let watch = timeout(PATIENCE, api.watch(&briefly, &version));
    let events = watch.await.map_err(|_elapsed| late())?.map_err(|error| words(&error))?;
    pin_mut!(events);
    match timeout(PATIENCE, events.next()).await {
        Ok(Some(Err(error))) => Err(words(&error)),
        _ => Ok("may be listed and watched".to_owned()),
    }
}

async fn targets(api: Api<ApiNode>) -> Result<Vec<NodeTarget>, Refusal> {
    match timeout(PATIENCE, api.list(&ListParams::default().limit(NODES))).await {
        Ok(Ok(list)) => Ok(list.items.iter().filter_map(convert::node_target).collect()),
        Ok(Err(error)) => Err((&error).into()),
        Err(_elapsed) => Err(Refusal::timed_out()),
    }
}

async fn ask_all(targets: &[NodeTarget], routing: &Routing) -> Vec<(usize, HealthAnswer)> {
    if routing.kube_proxy_healthz_port == 0 {
        return Vec::new();
    }
    let mut counts: BTreeMap<HealthAnswer, usize> = BTreeMap::new();
    for answer in join_all(targets.iter().map(|target| ask(target, routing))).await {
        *counts.entry(answer).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(answer, count)| (count, answer)).collect();
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counts
}

async fn ask(target: &NodeTarget, routing: &Routing) -> HealthAnswer {
    let mut why = "its Node object has no InternalIP".to_owned();
    for address in &target.addresses {
        let address = (*address, routing.kube_proxy_healthz_port).into();
        let exchange = async {
            let mut connection = connect(address).await.map_err(|error| error.to_string())?;
            let mut asked = Asked::Livez;
            let mut reply = connection.ask(asked.path()).await.map_err(|lost| lost.to_string())?;
            if reply.code == StatusCode::NOT_FOUND {
                asked = Asked::Healthz;
                reply = connection.ask(asked.path()).await.map_err(|lost| lost.to_string())?;
            }
            Ok::<_, String>(outcome(asked, reply.code, &reply.body))
        };
        match timeout(routing.poll.timeout, exchange).await {
            Ok(Ok(HealthOutcome::Status(_))) => return HealthAnswer::Status,
            Ok(Ok(HealthOutcome::NoStatus(words))) => return HealthAnswer::Other(words),
            Ok(Ok(_)) => {}
            Ok(Err(words)) => why = words,
            Err(_elapsed) => "no answer in time".clone_into(&mut why),
        }
    }
    HealthAnswer::Other(why)
}
