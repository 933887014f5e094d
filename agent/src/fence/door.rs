//! Who may ask: the address of an endpoint that is going. That is read from the API when somebody asks, and nothing is watched
//! for it: an agent asks once its pod is withdrawn, which a consistent read shows from then on.
//!
//! Which namespace to look in is what the caller says. It proves nothing by that: the address that the question comes from is to
//! be that of an endpoint there.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::{core::v1::Pod, discovery::v1::EndpointSlice};
use kube::{Api, api::ListParams};
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, timeout},
};

use super::{clients::Clients, desk::Refused};
use crate::{
    cluster::{
        Refusal,
        convert::{self, pod::has_address},
    },
    config::FenceCallers,
    core::{
        cluster::{ServiceProxy, Slice},
        termination::PodRead,
    },
};

/// How many slices a page has: one of a thousand endpoints has some 300 KiB.
const PAGE: u32 = 100;

/// How long a page may take, and all of it. An agent takes a fence that says nothing for three seconds for gone: it is told why
/// before that.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_millis(2500));

/// How many namespaces are read at once.
const AT_ONCE: usize = 4;

/// See the module.
pub(super) struct Door {
    callers: FenceCallers,
    clients: Arc<Clients>,
    namespaces: Mutex<BTreeMap<String, Arc<Namespace>>>,
    reading: Semaphore,
}

/// One namespace, and what was last read of it: whoever asked before that began shares it.
type Namespace = Mutex<Option<(Instant, Endpoints)>>;

/// The addresses of a namespace's endpoints, as far as kube-proxy makes routes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Endpoints {
    /// Some slice lists it as ready.
    ready: BTreeSet<IpAddr>,
    all: BTreeSet<IpAddr>,
}

impl Door {
    pub(super) fn new(callers: FenceCallers, clients: Arc<Clients>) -> Self {
        Self { callers, clients, namespaces: Mutex::default(), reading: Semaphore::new(AT_ONCE) }
    }

    /// Whether `address` may ask; `pod` is who it says it is: `namespace/name`.
    ///
    /// # Errors
    /// Why not.
    pub(super) async fn admit(&self, address: IpAddr, pod: &str) -> Result<(), Refused> {
        if self.callers == FenceCallers::Any {
            return Ok(());
        }
        let Some((namespace, name)) =
            pod.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name))
        else {
            let shown: String = pod.chars().take(64).collect();
            return Err(Refused::Caller(format!(
                "a question says which pod asks, as namespace/name; this one: {shown:?}"
            )));
        };
        match timeout(PATIENCE.1, self.is_going(address, namespace, name)).await {
            Ok(admitted) => admitted,
            Err(_elapsed) => Err(Refused::Unable("the API server does not tell in time who asks".to_owned())),
        }
    }

    async fn is_going(&self, address: IpAddr, namespace: &str, name: &str) -> Result<(), Refused> {
        let asked = Instant::now();
        let of_namespace = Arc::clone(self.namespaces.lock().await.entry(namespace.to_owned()).or_default());
        let state = {
            let mut read = of_namespace.lock().await;
            // One that began before the question may show what was before the withdrawal.
            if read.as_ref().is_none_or(|(began, _)| *began < asked) {
                let began = Instant::now();
                let endpoints = self.read(namespace).await;
                *read = endpoints.as_ref().ok().map(|endpoints| (began, endpoints.clone()));
                endpoints.map(|endpoints| endpoints.state(address))
            } else {
                Ok(read.as_ref().and_then(|(_, endpoints)| endpoints.state(address)))
            }
        };
        drop(of_namespace);
        // What nobody else waits for is forgotten.
        self.namespaces.lock().await.retain(|_, namespace| Arc::strong_count(namespace) > 1);
        match state.map_err(|refusal| told(&refusal, "list endpointslices"))? {
            Some(true) => Ok(()),
            Some(false) => Err(Refused::Caller(format!("{address} is an endpoint that is ready: it is not going"))),
            // Removed from the slices, as it may be where it goes.
            None => self.is_a_terminating_pod(address, namespace, name).await,
        }
    }

    async fn read(&self, namespace: &str) -> Result<Endpoints, Refusal> {
        // It is never closed.
        let _turn = self.reading.acquire().await.map_err(|_closed| Refusal::timed_out())?;
        let (client, access) = self.clients.get().await?;
        let slices = Api::<EndpointSlice>::namespaced(client, namespace);
        let (mut endpoints, mut page) = (Endpoints::default(), ListParams::default().limit(PAGE));
        loop {
            access.turn().await;
            let list = match timeout(PATIENCE.0, slices.list(&page)).await {
                Ok(list) => list.map_err(|error| Refusal::from(&error))?,
                Err(_elapsed) => return Err(Refusal::timed_out()),
            };
            list.items.iter().filter_map(convert::slice).for_each(|slice| endpoints.add(&slice.value));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(endpoints),
            }
        }
    }

    async fn is_a_terminating_pod(&self, address: IpAddr, namespace: &str, name: &str) -> Result<(), Refused> {
        let refused = |what: &str| Refused::Caller(format!("{address} is no endpoint in {namespace}, and {what}"));
        let read = async {
            let (client, access) = self.clients.get().await?;
            access.turn().await;
            Api::<Pod>::namespaced(client, namespace).get(name).await.map_err(|error| Refusal::from(&error))
        };
        match read.await {
            Ok(pod) if !has_address(&pod, address) => Err(refused(&format!("not the address of the pod {name}"))),
            Ok(pod) if convert::pod_read(&pod, None) == PodRead::Terminating => Ok(()),
            Ok(_) => Err(refused(&format!("the pod {name} is not terminating"))),
            Err(Refusal::Absent) => Err(refused(&format!("there is no pod {name}"))),
            Err(refusal) => Err(told(&refusal, "get pods")),
        }
    }
}

/// A fault is no reason to take anybody in, and none to turn him away for good.
fn told(refusal: &Refusal, right: &str) -> Refused {
    match refusal {
        Refusal::Denied(why) => {
            let why = format!("{why}; let the fence {right} everywhere, or set fence.callers to any");
            tracing::warn!(why, "the fence cannot see who asks, and turns everybody away");
            Refused::Unable(why)
        }
        refusal => Refused::Unable(refusal.words().to_owned()),
    }
}

/// A name of Kubernetes: nothing else gets into the path of a request.
pub(super) fn is_name(text: &str) -> bool {
    let one = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    (1..=253).contains(&text.len()) && text.bytes().all(one) && !text.starts_with('.')
}

impl Endpoints {
    fn add(&mut self, slice: &Slice) {
        // What kube-proxy makes nothing of may be called ready for as long as the pod lives.
        for endpoint in slice.endpoints.iter().filter(|_| slice.proxy == ServiceProxy::KubeProxy) {
            self.all.extend(&endpoint.addresses);
            if endpoint.is_ready() {
                self.ready.extend(&endpoint.addresses);
            }
        }
    }

    /// Whether an endpoint is going; `None`: it is none.
    fn state(&self, address: IpAddr) -> Option<bool> {
        self.all.contains(&address).then(|| !self.ready.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn endpoints(slices: &[serde_json::Value]) -> Endpoints {
        let mut endpoints = Endpoints::default();
        for slice in slices {
            let slice: EndpointSlice = serde_json::from_value(slice.clone()).expect("a slice");
            endpoints.add(&convert::slice(&slice).expect("it has a name").value);
        }
        endpoints
    }

    fn slice(label: &str, all: &[(&str, bool)]) -> serde_json::Value {
        let endpoints: Vec<_> =
            all.iter().map(|(ip, ready)| json!({"addresses": [ip], "conditions": {"ready": ready}})).collect();
        json!({
            "metadata": {"name": "a", "labels": {"kubernetes.io/service-name": "web", label: ""}},
            "addressType": "IPv4", "endpoints": endpoints,
        })
    }

    #[test]
    fn an_endpoint_goes_once_no_slice_that_counts_calls_it_ready() {
        let ip = |text: &str| text.parse::<IpAddr>().expect(text);
        let read = endpoints(&[
            slice("x", &[("10.0.0.1", true), ("10.0.0.2", false), ("10.0.0.3", false)]),
            slice("x", &[("10.0.0.3", true)]),
            slice("service.kubernetes.io/headless", &[("10.0.0.2", true), ("10.0.0.4", true)]),
        ]);
        assert_eq!(read.state(ip("10.0.0.1")), Some(false));
        assert_eq!(read.state(ip("10.0.0.2")), Some(true), "a headless Service may list whoever is not ready");
        assert_eq!(read.state(ip("10.0.0.3")), Some(false), "listed twice, and ready once");
        assert_eq!(read.state(ip("10.0.0.4")), None);
        assert_eq!(read.state(ip("10.0.0.5")), None);
    }

    #[test]
    fn only_names_get_into_a_path() {
        assert!(is_name("shop") && is_name("web-0.a"));
        for text in ["", "..", "a/b", "a?b", "A", "a%2f", "ä", &"a".repeat(254)] {
            assert!(!is_name(text), "{text}");
        }
    }
}
