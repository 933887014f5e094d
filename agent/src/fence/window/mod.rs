//! What a pod may see of the cluster through the fence (`routing.source: fence`), so that it needs no token of its own: the
//! slices and Services of its namespace, and its own object. Nothing else, and nothing is written.
//!
//! It is the API server's own interface below `/v1/cluster/NAMESPACE/NAME`, with the same order, versions and consistency, as
//! every request is passed on: list and watch (C10), and reads without a `resourceVersion` (C9, S5) are what they are there.
//! What is shown is cut down to what a drain depends on.
//!
//! | what | where |
//! | --- | --- |
//! | who asks, and what may be asked | here |
//! | lists and watches | `read` |
//! | what is shown of an object. Pure | `view` |
//!
//! Who asks is known by the address that the request comes from, which is to be the pod's that the path names. Any replica
//! answers: nothing is remembered between two requests.

mod read;
mod view;

use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use k8s_openapi::api::{
    core::v1::{Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Api, Client};
use serde_json::json;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    callers::{Callers, Pass},
    clients::Clients,
};
use crate::{
    cluster::{Access, Refusal, convert::pod::has_address},
    drive::clock,
    server::peer::Peer,
};

/// Where it begins. The pod's namespace and name follow, and then the API server's own path.
pub const PATH: &str = "/v1/cluster";

/// How long a request to the API server may take. Where it is cut off from this replica alone, an agent is told so in time to
/// ask another one.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many lists are read at once: they are held in full.
const LISTS: usize = 4;

/// What the handlers work with.
pub(super) struct Window {
    clients: Arc<Clients>,
    callers: Callers,
    lists: Semaphore,
}

/// A pod that asks, and the way to what it asks for.
struct Asking {
    pod: Pod,
    /// All its addresses.
    addresses: BTreeSet<IpAddr>,
    client: Client,
    access: Access,
    /// Given back when the answer has ended.
    pass: Pass,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    what: What,
    /// Names and versions alone.
    metadata_only: bool,
    /// From this version on.
    watch: Option<Watch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    OwnPod,
    Services,
    Slices,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Watch {
    version: String,
    seconds: u32,
}

impl Window {
    pub(super) fn new(clients: Arc<Clients>, callers: Callers) -> Self {
        Self { clients, callers, lists: Semaphore::new(LISTS) }
    }

    pub(super) fn router(self) -> Router {
        Router::new().route(&format!("{PATH}/{{namespace}}/{{name}}/{{*path}}"), get(show)).with_state(Arc::new(self))
    }

    async fn show(
        &self,
        peer: Peer,
        (namespace, name): (&str, &str),
        request: Option<Request>,
    ) -> Result<Response, Refusal> {
        let denied = |why: &str| Refusal::Denied(why.to_owned());
        let address = peer.address().ok_or_else(|| denied("a request comes over the network"))?;
        let pass = self.callers.read(address, clock::now()).map_err(|many| Refusal::Failed(many.to_string()))?;
        let request = request.ok_or_else(|| {
            denied(
                "the fence shows a pod the slices and Services of its namespace, and its own object, and nothing else",
            )
        })?;
        let asking = self.know(address, namespace, name, pass).await?;
        match request.what {
            What::OwnPod => Ok(Json(view::pod(&asking.pod)).into_response()),
            What::Services => {
                let services = Api::<Service>::namespaced(asking.client.clone(), namespace);
                read::services(self, services, asking, request).await
            }
            What::Slices => {
                let slices = Api::<EndpointSlice>::namespaced(asking.client.clone(), namespace);
                read::slices(self, slices, asking, request).await
            }
        }
    }

    /// Who asks: the pod that has the address, by a read of this moment.
    async fn know(&self, address: IpAddr, namespace: &str, name: &str, pass: Pass) -> Result<Asking, Refusal> {
        // Whether there is such a pod is nobody's business but its own.
        let stranger = || Refusal::Denied(format!("{address} is not the address of the pod {namespace}/{name}"));
        if !(super::door::is_name(namespace) && super::door::is_name(name)) {
            return Err(stranger());
        }
        let (client, access) = self.clients.get().await?;
        access.turn().await;
        let read = Api::<Pod>::namespaced(client.clone(), namespace);
        let pod = match timeout(PATIENCE, read.get(name)).await.map_err(|_elapsed| Refusal::timed_out())? {
            Ok(pod) => pod,
            Err(error) => match Refusal::from(&error) {
                Refusal::Absent => return Err(stranger()),
                refusal => return Err(refusal),
            },
        };
        if !has_address(&pod, address) {
            return Err(stranger());
        }
        let ips = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
        let addresses = ips.filter_map(|ip| ip.ip.parse().ok()).chain([address]).collect();
        Ok(Asking { pod, addresses, client, access: access.clone(), pass })
    }
}

impl Request {
    /// By the API server's path behind the pod's name; `None`: it is not for this pod.
    fn of((namespace, name): (&str, &str), path: &str, query: &str, accept: &str) -> Option<Self> {
        let what = if path == format!("api/v1/namespaces/{namespace}/pods/{name}") {
            What::OwnPod
        } else if path == format!("api/v1/namespaces/{namespace}/services") {
            What::Services
        } else if path == format!("apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices") {
            What::Slices
        } else {
            return None;
        };
        let value = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        let watch = match value("watch") {
            Some("true" | "1") if what != What::OwnPod => {
                let version =
                    value("resourceVersion").filter(|version| version.bytes().all(|byte| byte.is_ascii_digit()));
                let seconds = value("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(10);
                Some(Watch {
                    version: version.filter(|version| !version.is_empty())?.to_owned(),
                    seconds: seconds.clamp(1, 60),
                })
            }
            _ => None,
        };
        Some(Self { what, metadata_only: accept.contains("PartialObjectMetadata"), watch })
    }
}

async fn show(
    State(window): State<Arc<Window>>,
    Extension(peer): Extension<Peer>,
    Path((namespace, name, path)): Path<(String, String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let request = Request::of((&namespace, &name), &path, uri.query().unwrap_or_default(), accept);
    window.show(peer, (&namespace, &name), request).await.unwrap_or_else(|refusal| refused(&refusal))
}

/// A refusal as the API server words its own, so that its client reads it.
fn refused(refusal: &Refusal) -> Response {
    let (code, reason) = match refusal {
        Refusal::Denied(_) => (StatusCode::FORBIDDEN, "Forbidden"),
        Refusal::Absent => (StatusCode::NOT_FOUND, "NotFound"),
        Refusal::Conflict => (StatusCode::CONFLICT, "Conflict"),
        Refusal::Expired => (StatusCode::GONE, "Expired"),
        Refusal::Failed(_) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("through the fence: {}", refusal.words()), "reason": reason, "code": code.as_u16(),
    });
    let mut response = (code, Json(status)).into_response();
    if code == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        // The agent's next connection may lead to a replica that can answer; this one would always lead here.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_is_refused_for_now_asks_over_another_connection() {
        let closes = |refusal: Refusal| refused(&refusal).headers().get(header::CONNECTION).is_some();
        assert!(closes(Refusal::timed_out()));
        assert!(closes(Refusal::Failed("broken".to_owned())));
        assert!(!closes(Refusal::Absent));
        assert!(!closes(Refusal::Expired));
    }

    #[test]
    fn a_pod_asks_for_its_own_and_nothing_else() {
        let of = |path: &str, query: &str| Request::of(("shop", "web-1"), path, query, "");
        let list = |what| Some(Request { what, metadata_only: false, watch: None });
        let slices = "apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
        assert_eq!(of("api/v1/namespaces/shop/pods/web-1", ""), list(What::OwnPod));
        assert_eq!(of("api/v1/namespaces/shop/services", "limit=100"), list(What::Services));
        assert_eq!(of(slices, ""), list(What::Slices));
        let watch = Some(Watch { version: "17".to_owned(), seconds: 10 });
        let query = "watch=true&timeoutSeconds=10&resourceVersion=17&allowWatchBookmarks=true";
        assert_eq!(of(slices, query).and_then(|request| request.watch), watch);
        for path in [
            "api/v1/namespaces/shop/pods/web-2",
            "api/v1/namespaces/shop/pods",
            "api/v1/namespaces/shop/pods/web-1/log",
            "api/v1/namespaces/other/services",
            "api/v1/namespaces/shop/secrets",
            "api/v1/nodes",
            "apis/discovery.k8s.io/v1/endpointslices",
            "",
        ] {
            assert_eq!(of(path, ""), None, "{path}");
        }
        // A watch from nowhere would begin with what is there now, in no list.
        assert_eq!(of(slices, "watch=true"), None);
        assert_eq!(of(slices, "watch=true&resourceVersion="), None);
        assert_eq!(of(slices, "watch=true&resourceVersion=1%26"), None);
        let metadata = Request::of(("shop", "web-1"), slices, "", "application/json;as=PartialObjectMetadataList;v=v1");
        assert!(metadata.is_some_and(|request| request.metadata_only));
    }
}
