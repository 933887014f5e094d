//! Lists and watches for one pod.

use std::{collections::BTreeSet, convert::Infallible, fmt::Debug};

use axum::{
    Json,
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{
    Stream, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api, Resource,
    api::{ListParams, ObjectList, VersionMatch, WatchEvent, WatchParams},
    core::{PartialObjectMeta, Status},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::timeout;

use super::{Asking, PATIENCE, Request, Watch, Window, view};
use crate::cluster::Refusal;

/// How many objects a page of the API server has: in full, and by their metadata.
const PAGES: (u32, u32) = (100, 500);

/// An answer on its way. Boxed, as the types of requests within requests grow beyond what compiles in seconds.
pub(super) type Answer<'a> = BoxFuture<'a, Result<Response, Refusal>>;

/// The Services of the namespace.
pub(super) fn services(window: &Window, api: Api<Service>, asking: Asking, request: Request) -> Answer<'_> {
    Box::pin(async move {
        match request.watch {
            Some(from) => watch(api, asking, from, |service| Some(view::service(service))).await,
            None if request.metadata_only => names(&api, &asking).await,
            None => {
                let list = list(window, &api, &asking, None).await?;
                Ok(Json(shown(list, view::service)).into_response())
            }
        }
    })
}

/// The slices of the namespace: in full those of the Services that list the pod.
pub(super) fn slices(window: &Window, api: Api<EndpointSlice>, asking: Asking, request: Request) -> Answer<'_> {
    Box::pin(slices_for(window, api, asking, request))
}

async fn slices_for(
    window: &Window,
    api: Api<EndpointSlice>,
    asking: Asking,
    request: Request,
) -> Result<Response, Refusal> {
    let addresses = asking.addresses.clone();
    match request.watch {
        Some(from) => {
            // What was shown in full by the list that the watch goes on from, whoever answered that.
            let before = list(window, &api, &asking, Some(&from.version)).await?;
            let own = own_services(&before, &addresses);
            drop(before);
            watch(api, asking, from, move |slice| {
                let service = view::lists(slice, &addresses);
                if service.is_some_and(|service| !own.contains(&service)) {
                    // Its other slices were not shown: everything is to be listed anew.
                    return None;
                }
                Some(cut(slice, &own))
            })
            .await
        }
        None if request.metadata_only => names(&api, &asking).await,
        None => {
            let list = list(window, &api, &asking, None).await?;
            let own = own_services(&list, &addresses);
            Ok(Json(shown(list, |slice| cut(slice, &own))).into_response())
        }
    }
}

fn own_services(list: &ObjectList<EndpointSlice>, addresses: &BTreeSet<std::net::IpAddr>) -> BTreeSet<String> {
    list.items.iter().filter_map(|slice| view::lists(slice, addresses)).collect()
}

fn cut(slice: &EndpointSlice, own: &BTreeSet<String>) -> EndpointSlice {
    let service = slice.metadata.labels.as_ref().and_then(|labels| labels.get("kubernetes.io/service-name"));
    if service.is_some_and(|service| own.contains(service)) { view::slice(slice) } else { view::foreign_slice(slice) }
}

fn shown<K: Clone>(mut list: ObjectList<K>, show: impl Fn(&K) -> K) -> ObjectList<K> {
    for item in &mut list.items {
        *item = show(item);
    }
    list
}

/// Everything, as of now or as of a version.
fn list<'a, K>(
    window: &'a Window,
    api: &'a Api<K>,
    asking: &'a Asking,
    version: Option<&'a str>,
) -> BoxFuture<'a, Result<ObjectList<K>, Refusal>>
where
    K: Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    Box::pin(list_all(window, api, asking, version))
}

async fn list_all<K>(
    window: &Window,
    api: &Api<K>,
    asking: &Asking,
    version: Option<&str>,
) -> Result<ObjectList<K>, Refusal>
where
    K: Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    // It is never closed.
    let _turn = window.lists.acquire().await.map_err(|_closed| Refusal::timed_out())?;
    let mut page = ListParams::default().limit(PAGES.0);
    if let Some(version) = version {
        page.resource_version = Some(version.to_owned());
        page.version_match = Some(VersionMatch::Exact);
    }
    let mut all: Option<ObjectList<K>> = None;
    loop {
        asking.access.turn().await;
        let mut list = in_time(api.list(&page)).await?;
        let token = list.metadata.continue_.take().filter(|token| !token.is_empty());
        list.metadata.remaining_item_count = None;
        match &mut all {
            Some(all) => all.items.append(&mut list.items),
            None => all = Some(list),
        }
        match (token, all.take()) {
            (None, Some(all)) => return Ok(all),
            (token, list) => {
                all = list;
                page = ListParams::default().limit(PAGES.0);
                page.continue_token = token;
            }
        }
    }
}

/// Names and versions.
fn names<'a, K>(api: &'a Api<K>, asking: &'a Asking) -> Answer<'a>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    Box::pin(all_names(api, asking))
}

async fn all_names<K>(api: &Api<K>, asking: &Asking) -> Result<Response, Refusal>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let mut page = ListParams::default().limit(PAGES.1);
    let mut all: Option<ObjectList<PartialObjectMeta<K>>> = None;
    loop {
        asking.access.turn().await;
        let mut list = in_time(api.list_metadata(&page)).await?;
        for item in &mut list.items {
            item.metadata = view::metadata(&item.metadata, false);
        }
        let token = list.metadata.continue_.take().filter(|token| !token.is_empty());
        list.metadata.remaining_item_count = None;
        if let Some(before) = all.take() {
            list.items.splice(..0, before.items);
            list.metadata = before.metadata;
        }
        match token {
            None => return Ok(Json(list).into_response()),
            Some(token) => page.continue_token = Some(token),
        }
        all = Some(list);
    }
}

/// A watch, event by event. Where `show` has nothing to show, it has expired.
fn watch<K>(
    api: Api<K>,
    asking: Asking,
    from: Watch,
    show: impl Fn(&K) -> Option<K> + Send + Sync + 'static,
) -> Answer<'static>
where
    K: Clone + DeserializeOwned + Serialize + Debug + Send + Sync + 'static,
{
    Box::pin(watch_from(api, asking, from, show))
}

async fn watch_from<K>(
    api: Api<K>,
    asking: Asking,
    from: Watch,
    show: impl Fn(&K) -> Option<K> + Send + Sync + 'static,
) -> Result<Response, Refusal>
where
    K: Clone + DeserializeOwned + Serialize + Debug + Send + Sync + 'static,
{
    asking.access.turn().await;
    let parameters = WatchParams::default().timeout(from.seconds);
    let events = match timeout(PATIENCE, api.watch(&parameters, &from.version)).await {
        Ok(events) => events.map_err(|error| Refusal::from(&error))?.boxed(),
        Err(_elapsed) => return Err(Refusal::timed_out()),
    };
    let lines = lines(events, show).boxed();
    let pass = asking.pass;
    // The pass is given back when the answer has ended.
    let held = lines.map(move |line| {
        let _held = &pass;
        Ok::<_, Infallible>(line)
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from_stream(held)).into_response())
}

fn lines<K: Clone + Serialize>(
    events: BoxStream<'static, kube::Result<WatchEvent<K>>>,
    show: impl Fn(&K) -> Option<K>,
) -> impl Stream<Item = Bytes> {
    stream::unfold(Some((events, show)), async |going| {
        let (mut events, show) = going?;
        // A watch that broke off ends: whoever watches goes on where it was.
        let event = events.next().await?.ok()?;
        let expired = || WatchEvent::Error(Box::new(expired()));
        let event = match event {
            WatchEvent::Added(one) => show(&one).map_or_else(expired, WatchEvent::Added),
            WatchEvent::Modified(one) => show(&one).map_or_else(expired, WatchEvent::Modified),
            WatchEvent::Deleted(one) => show(&one).map_or_else(expired, WatchEvent::Deleted),
            other => other,
        };
        let mut line = BytesMut::new();
        line.extend_from_slice(&serde_json::to_vec(&event).ok()?);
        line.put_u8(b'\n');
        let over = matches!(event, WatchEvent::Error(_));
        Some((line.freeze(), (!over).then_some((events, show))))
    })
}

fn expired() -> Status {
    Status::failure("another Service lists the pod: list anew", "Expired").with_code(410)
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Refusal> {
    match timeout(PATIENCE, request).await {
        Ok(answer) => answer.map_err(|error| Refusal::from(&error)),
        Err(_elapsed) => Err(Refusal::timed_out()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(service: &str, address: &str) -> EndpointSlice {
        serde_json::from_value(json!({
            "metadata": {"name": "s", "resourceVersion": "3", "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4", "endpoints": [{"addresses": [address]}],
        }))
        .expect("a slice")
    }

    #[tokio::test]
    async fn a_service_that_begins_to_list_the_pod_lets_the_watch_expire() {
        let own = BTreeSet::from(["web".to_owned()]);
        let addresses = BTreeSet::from(["10.0.0.1".parse().expect("an address")]);
        let show = |slice: &EndpointSlice| {
            let service = view::lists(slice, &addresses);
            if service.is_some_and(|service| !own.contains(&service)) { None } else { Some(cut(slice, &own)) }
        };
        let events = [("web", "10.0.0.2"), ("other", "10.0.0.3"), ("other", "10.0.0.1"), ("web", "10.0.0.4")]
            .map(|(service, address)| Ok(WatchEvent::Modified(slice(service, address))));
        let lines: Vec<Bytes> = lines(stream::iter(events).boxed(), show).collect().await;
        let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_slice(line).expect("JSON")).collect();
        let [own_slice, foreign, end] = lines.as_slice() else { panic!("{lines:#?}") };
        assert_eq!(own_slice.pointer("/object/endpoints/0/addresses/0"), Some(&json!("10.0.0.2")));
        assert_eq!(foreign.pointer("/object/metadata"), Some(&json!({"name": "s", "resourceVersion": "3"})));
        assert!(!foreign.to_string().contains("10.0.0"), "{foreign}");
        assert_eq!((end.pointer("/type"), end.pointer("/object/code")), (Some(&json!("ERROR")), Some(&json!(410))));
    }
}
