//! One pod on the node that has a kubelet, and the ways in which it or its server may end.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Cluster, Refused, control_plane, pod_template};
use crate::{agent_log, http, wait::await_condition};

/// Images are there; a kubelet looks at a new pod every second.
const START: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(5);
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A pod with a server and the agent, as a kubelet runs it.
#[derive(Debug)]
pub struct KubeletPod<'a> {
    cluster: &'a Cluster,
    name: String,
    uid: String,
}

/// What is to become of the server by itself.
#[derive(Clone, Copy, Debug)]
pub enum Health {
    /// Nothing.
    Well,
    /// Its liveness probe fails once, so many seconds after its start.
    SickOnce(u32),
    /// Nothing, and the kubelet asks it every second at the port of its clients. The agent has this `listeners.probes`.
    Probed(&'static str),
    /// Nothing, and the kubelet calls its hook over HTTP.
    HookOverHttp,
}

// === impl KubeletPod ===

impl<'a> KubeletPod<'a> {
    /// Makes it, with a label `app` and an agent of a `ServiceAccount`.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn create(cluster: &'a Cluster, name: &str, app: &str, account: &str, health: Health) -> Result<Self> {
        let spec = pod_template::spec(account, true);
        let spec = match health {
            Health::Well => spec,
            Health::SickOnce(after) => pod_template::sick_once(spec, after),
            Health::HookOverHttp => pod_template::hook_over_http(spec),
            Health::Probed(probes) => pod_template::probed(spec, probes),
        };
        Self::of(cluster, name, app, &spec)
    }

    /// The same by a specification.
    pub(super) fn of(cluster: &'a Cluster, name: &str, app: &str, spec: &Value) -> Result<Self> {
        let metadata = json!({"name": name, "labels": {"app": app}});
        let object = cluster.api().post(PODS, &json!({"metadata": metadata, "spec": spec}))?;
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str).context("a Pod without a UID")?;
        Ok(Self { cluster, name: name.to_owned(), uid: uid.to_owned() })
    }

    /// The name of its node.
    pub fn node(&self) -> &'static str {
        control_plane::KUBELET_NODE
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until its server has been started that often in all, and is ready.
    ///
    /// # Errors
    ///
    /// When it is not in time.
    pub fn await_ready(&self, starts: u64, within: Duration) -> Result<()> {
        let path = format!("{PODS}/{}", self.name);
        let is_ready = |object: &Value| {
            let mut states =
                object.pointer("/status/containerStatuses").and_then(Value::as_array).into_iter().flatten();
            let state = states.find(|state| state.get("name").is_some_and(|name| name != pod_template::AGENT));
            let restarts = state.and_then(|state| state.get("restartCount")).and_then(Value::as_u64);
            let ready = state.and_then(|state| state.get("ready")).and_then(Value::as_bool);
            restarts.is_some_and(|restarts| restarts + 1 >= starts) && ready == Some(true)
        };
        let what = format!("{} ready after {starts} starts of its server", self.name);
        await_condition(&what, within.max(START), || {
            self.cluster.api().get(&path).is_ok_and(|object| is_ready(&object))
        })
        .with_context(|| format!("{:?}", self.object()))
    }

    /// Asks for its deletion.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn delete(&self) -> Result<()> {
        self.cluster.api().delete(&format!("{PODS}/{}", self.name), None).map(drop)
    }

    /// Asks for its eviction, as `kubectl drain` does.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn evict(&self) -> Result<()> {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": self.name}});
        self.cluster.api().post(&format!("{PODS}/{}/eviction", self.name), &eviction).map(drop)
    }

    /// Its object; `None` once it has gone.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub fn object(&self) -> Result<Option<Value>> {
        match self.cluster.api().get(&format!("{PODS}/{}", self.name)) {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == 404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the agent has logged so far; nothing once that has gone with the pod.
    pub fn log(&self) -> String {
        let kubelet = self.cluster.kubelet();
        kubelet.and_then(|kubelet| kubelet.log(&self.name, &self.uid, pod_template::AGENT)).unwrap_or_default()
    }

    /// What the agent says of itself now, asked from the pod's node.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn status(&self) -> Result<Value> {
        let object = self.object()?.with_context(|| format!("{} has gone", self.name))?;
        let address = object.pointer("/status/podIP").and_then(Value::as_str).context("a Pod without an address")?;
        let node = self.cluster.node(control_plane::KUBELET_NODE)?;
        let target = SocketAddr::new(address.parse()?, pod_template::AGENT_PORT);
        http::get(node.host(), target, "/v1/status", ANSWER)?.json()
    }

    /// Waits until the agent has logged a drain's verdict.
    ///
    /// # Errors
    ///
    /// When it has not in time.
    pub fn await_verdict(&self, within: Duration) -> Result<Value> {
        let what = format!("the verdict of {}", self.name);
        await_condition(&what, within, || agent_log::verdict(&self.log()))
            .with_context(|| format!("its agent wrote:\n{}", self.log()))
    }

    /// Waits until its object has gone.
    ///
    /// # Errors
    ///
    /// When it has not in time.
    pub fn await_gone(&self, within: Duration) -> Result<()> {
        await_condition(&format!("the end of {}", self.name), within, || {
            self.object().is_ok_and(|object| object.is_none())
        })?;
        ensure!(self.object()?.is_none(), "{} is there again", self.name);
        Ok(())
    }
}
