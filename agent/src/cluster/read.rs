//! Consistent reads: of the Services, their slices and the nodes (C9), and of the pod (S5). None names a
//! `resourceVersion`, so each shows what is at least as new as its beginning.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::{
    core::v1::{Node as ApiNode, Pod, Service as ApiService},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{
    access::Access,
    convert::{self, pod::OwnPod},
    mesh,
    refusal::Refusal,
};
use crate::core::{
    cluster::{Node, NodeName, ResourceVersion, ServiceName, SliceName, Snapshot},
    termination::PodRead,
    verdict::NotObserved,
};

/// How many objects a page has. Only their metadata is read.
const PAGE: u32 = 500;

/// What may be asked for, as far as is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// Services: if not, what is believed of them is nothing.
    pub(super) services: bool,
    /// The nodes.
    pub(super) nodes: bool,
}

/// C9: reads everything, names and versions alone. Nodes that `ignored` names are left out.
///
/// # Errors
/// See [`Refusal`].
pub(super) async fn snapshot(
    client: &Client,
    access: &Access,
    namespace: &str,
    allowed: Allowed,
    ignored: &std::collections::BTreeSet<NodeName>,
    patience: Duration,
) -> Result<Snapshot, Refusal> {
    let slices = versions(Api::<EndpointSlice>::namespaced(client.clone(), namespace), access, patience);
    let services = async {
        if !allowed.services {
            return Ok(BTreeMap::new());
        }
        versions(Api::<ApiService>::namespaced(client.clone(), namespace), access, patience).await
    };
    let nodes = async {
        if !allowed.nodes {
            return Ok(None);
        }
        nodes_by_metadata(client, access, ignored, patience).await.map(Some)
    };
    let (slices, services, nodes) = tokio::try_join!(slices, services, nodes)?;
    Ok(Snapshot {
        slices: slices.into_iter().map(|(name, version)| (SliceName(name), version)).collect(),
        services: services.into_iter().map(|(name, version)| (ServiceName(name), version)).collect(),
        nodes,
    })
}

/// The nodes' names and systems.
///
/// # Errors
/// See [`Refusal`].
pub(crate) async fn nodes_by_metadata(
    client: &Client,
    access: &Access,
    ignored: &std::collections::BTreeSet<NodeName>,
    patience: Duration,
) -> Result<Vec<Node>, Refusal> {
    let mut nodes = Vec::new();
    pages(Api::<ApiNode>::all(client.clone()), access, ListParams::default(), patience, |object| {
        nodes.extend(convert::node(&object.metadata).filter(|node| !ignored.contains(&node.name)));
    })
    .await?;
    Ok(nodes)
}

/// The names of the nodes that a label selector selects.
///
/// # Errors
/// See [`Refusal`]; a selector that is none is [`Refusal::Failed`], by the API server's own words.
pub(crate) async fn nodes_selected(
    client: &Client,
    access: &Access,
    selector: &str,
    patience: Duration,
) -> Result<std::collections::BTreeSet<NodeName>, Refusal> {
    let mut names = std::collections::BTreeSet::new();
    let selected = ListParams::default().labels(selector);
    pages(Api::<ApiNode>::all(client.clone()), access, selected, patience, |object| {
        names.extend(convert::node(&object.metadata).map(|node| node.name));
    })
    .await?;
    Ok(names)
}

/// What a read of the agent's own pod shows.
pub(super) struct PodShown {
    /// S5: whether it is terminating.
    pub(super) outcome: PodRead,
    /// W8: the ways to it that no Service shows.
    pub(super) paths: Vec<NotObserved>,
    /// What it is like; `None` where it is not there any more.
    pub(super) own: Option<OwnPod>,
}

/// The pod's own object. A pod that is not there has been deleted.
///
/// # Errors
/// See [`Refusal`].
pub(super) async fn pod(
    client: &Client,
    access: &Access,
    namespace: &str,
    name: &str,
    uid: Option<&str>,
    patience: Duration,
) -> Result<PodShown, Refusal> {
    access.turn().await;
    match timeout(patience, Api::<Pod>::namespaced(client.clone(), namespace).get(name)).await {
        Ok(Ok(pod)) => Ok(PodShown {
            outcome: convert::pod_read(&pod, uid),
            paths: convert::pod_paths(&pod).into_iter().chain(mesh::of_pod(&pod)).collect(),
            own: convert::pod::is_ours(&pod, uid).then(|| convert::pod::own(&pod)),
        }),
        Ok(Err(error)) => match Refusal::from(&error) {
            Refusal::Absent => Ok(PodShown { outcome: PodRead::Terminating, paths: Vec::new(), own: None }),
            refusal => Err(refusal),
        },
        Err(_elapsed) => Err(Refusal::timed_out()),
    }
}

async fn versions<K>(
    api: Api<K>,
    access: &Access,
    patience: Duration,
) -> Result<BTreeMap<String, ResourceVersion>, Refusal>
where
    K: Clone + DeserializeOwned + std::fmt::Debug + kube::Resource,
{
    let mut all = BTreeMap::new();
    pages(api, access, ListParams::default(), patience, |object| {
        if let Some(name) = convert::name(&object.metadata) {
            all.insert(name.to_owned(), convert::version(&object.metadata));
        }
    })
    .await?;
    Ok(all)
}

async fn pages<K>(
    api: Api<K>,
    access: &Access,
    mut page: ListParams,
    patience: Duration,
    mut take: impl FnMut(&PartialObjectMeta<K>),
) -> Result<(), Refusal>
where
    K: Clone + DeserializeOwned + std::fmt::Debug + kube::Resource,
{
    page.limit = Some(PAGE);
    loop {
        access.turn().await;
        let list = match timeout(patience, api.list_metadata(&page)).await {
            Ok(Ok(list)) => list,
            Ok(Err(error)) => return Err((&error).into()),
            Err(_elapsed) => return Err(Refusal::timed_out()),
        };
        list.items.iter().for_each(&mut take);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}
