//! A Deployment on the node that has a kubelet: `HAProxy` with the agent as native sidecar, and its hook.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Api, Cluster, control_plane::KUBELET_NODE, pod_template};
use crate::wait::await_condition;

/// From a change of the template until the last old pod has gone: two starts, and a drain to its bound.
const ROLLOUT: Duration = Duration::from_mins(2);

/// A Deployment of one pod, which a change replaces by a new one that is ready first.
#[derive(Debug)]
pub struct Deployment<'a> {
    api: &'a Api,
    name: String,
}

// === impl Deployment ===

impl<'a> Deployment<'a> {
    /// Makes it, with pods of a label `app` and of a `ServiceAccount`, and waits until its pod is ready.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub fn create(cluster: &'a Cluster, name: &str, account: &str, hook: bool) -> Result<Self> {
        Self::of(cluster, object(name, account, hook))
    }

    /// The same by a manifest, which has one pod and no namespace.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub fn of(cluster: &'a Cluster, mut manifest: Value) -> Result<Self> {
        let name = manifest.pointer("/metadata/name").and_then(Value::as_str).context("a Deployment has a name")?;
        let deployment = Self { api: cluster.api(), name: name.to_owned() };
        let spec = manifest.pointer_mut("/spec/template/spec").context("a Deployment has pods")?;
        if let Some(spec) = spec.as_object_mut() {
            // There is no scheduler.
            spec.insert("nodeName".to_owned(), json!(KUBELET_NODE));
        }
        deployment.api.post("/apis/apps/v1/namespaces/default/deployments", &manifest)?;
        deployment.await_rollout(|| {})?;
        Ok(deployment)
    }

    /// The name and UID of its pod.
    ///
    /// # Errors
    ///
    /// When it has not exactly one.
    pub fn only_pod(&self) -> Result<(String, String)> {
        let pods = self.pods()?;
        ensure!(pods.len() == 1, "the Deployment has {} pods", pods.len());
        let text = |pointer| pods.first()?.pointer(pointer)?.as_str().map(str::to_owned);
        text("/metadata/name").zip(text("/metadata/uid")).context("a Pod without a name")
    }

    /// Replaces its pod, as `kubectl rollout restart` does, and waits until the old one's object has gone. Meanwhile it looks,
    /// for what a pod wrote goes with it.
    ///
    /// # Errors
    ///
    /// When that does not come about in time.
    pub fn restart(&self, number: usize, look: impl FnMut()) -> Result<()> {
        let annotations = json!({"lab/restart": number.to_string()});
        self.api.patch(&self.path(), &json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}))?;
        self.await_rollout(look)
    }

    /// Changes the image of its agent, a native sidecar, and returns the one before. Nothing is waited for.
    ///
    /// # Errors
    ///
    /// When it has no such agent, or the API server does not take the change.
    pub fn replace_agent_image(&self, image: &str) -> Result<String> {
        let mut containers = self.api.get(&self.path())?.pointer("/spec/template/spec/initContainers").cloned();
        let agent = containers.as_mut().and_then(Value::as_array_mut).into_iter().flatten();
        let mut agent = agent.filter(|one| one.get("name").and_then(Value::as_str) == Some(pod_template::AGENT));
        let agent = agent.find_map(|one| one.get_mut("image")).context("the Deployment has no agent")?;
        let before = agent.as_str().context("an image has a name")?.to_owned();
        *agent = json!(image);
        // A merge patch replaces a list as a whole.
        let change = json!({"spec": {"template": {"spec": {"initContainers": containers}}}});
        self.api.patch(&self.path(), &change)?;
        Ok(before)
    }

    /// Its pods' objects.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub fn pods(&self) -> Result<Vec<Value>> {
        let list = self.api.get(&format!("/api/v1/namespaces/default/pods?labelSelector=app%3D{}", self.name))?;
        Ok(list.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    fn await_rollout(&self, mut look: impl FnMut()) -> Result<()> {
        let is_complete = || -> Result<bool> {
            let object = self.api.get(&self.path())?;
            let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
            let is_observed = number("/status/observedGeneration") == number("/metadata/generation");
            let counts = ["replicas", "updatedReplicas", "readyReplicas"];
            let is_whole = counts.iter().all(|count| number(&format!("/status/{count}")) == 1);
            Ok(is_observed && is_whole && self.pods()?.len() == 1)
        };
        await_condition(&format!("the rollout of {}", self.name), ROLLOUT, || {
            look();
            is_complete().unwrap_or(false)
        })
        .with_context(|| {
            format!("its pods: {}", self.pods().map_or_else(|error| error.to_string(), |pods| states(&pods)))
        })
    }

    fn path(&self) -> String {
        format!("/apis/apps/v1/namespaces/default/deployments/{}", self.name)
    }
}

fn states(pods: &[Value]) -> String {
    pods.iter().filter_map(|pod| pod.get("status")).map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn object(name: &str, account: &str, hook: bool) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_template::spec(account, hook)},
        },
    })
}
