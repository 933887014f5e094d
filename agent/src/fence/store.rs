//! What the fence keeps in the API: for each family a Service with a `healthCheckNodePort`, and its slices.
//!
//! The Service's type is `LoadBalancer` with a class that nobody claims: that gives it the port, and no load balancer. If its
//! slices are not as a fence has left them, nobody knows any more what a node that is late may show: then the Service is made
//! anew, under another name, and nothing that is left of the old one can be mistaken for anything of the new one.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::{
    api::{core::v1::Service, discovery::v1::EndpointSlice},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::timeout;

use super::markers::Markers;
use crate::{
    cluster::{Access, Refusal},
    core::{cluster::NodeName, listener::Family},
};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Selects the fence's Services; the value is the family's.
const FAMILY_LABEL: &str = "lastsyn.dev/fence";

/// How many slices there have been, at the Service.
const SLICES: &str = "lastsyn.dev/slices";

/// Which slices are a Service's, for kube-proxy.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The class that nobody claims.
const CLASS: &str = "lastsyn.dev/nobody";

/// The port of the Service: "discard" (RFC 863). Nothing listens at its endpoints.
const DISCARD: i32 = 9;

/// The objects of one family.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) family: Family,
    /// The Service's name.
    pub(super) service: String,
    /// `healthCheckNodePort`.
    pub(super) port: u16,
    uid: String,
    /// How many slices its annotation knows of.
    known_slices: u32,
    pub(super) markers: Markers,
    /// The versions of its slices, by their numbers.
    versions: BTreeMap<u32, String>,
}

/// The way to them.
#[derive(Clone)]
pub(super) struct Store {
    client: Client,
    access: Access,
    namespace: String,
}

impl Store {
    pub(super) fn new(client: Client, access: Access, namespace: String) -> Self {
        Self { client, access, namespace }
    }

    /// What is there of a family; makes what is missing.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub(super) async fn load(&self, family: Family) -> Result<Stored, Refusal> {
        let label = label(family);
        let of_family = ListParams::default().labels(&format!("{FAMILY_LABEL}={label}"));
        let mut found = self.ask(self.services().list(&of_family)).await?.items;
        found.sort_by_key(|service| {
            let ObjectMeta { creation_timestamp, name, .. } = &service.metadata;
            (creation_timestamp.as_ref().map(|time| time.0), name.clone())
        });
        let mut kept = None;
        for service in found {
            // The oldest counts; two replicas may have made one each.
            let stored = if kept.is_none() { self.read(family, &service).await? } else { None };
            match stored {
                Some(stored) => kept = Some(stored),
                None => self.discard(&service).await?,
            }
        }
        match kept {
            Some(stored) => Ok(stored),
            None => self.create(family).await,
        }
    }

    /// What is there of a Service; `None` where it is not as a fence makes it.
    async fn read(&self, family: Family, service: &Service) -> Result<Option<Stored>, Refusal> {
        let ObjectMeta { name, uid, annotations, deletion_timestamp, .. } = &service.metadata;
        let name = name.clone().unwrap_or_default();
        let spec = service.spec.clone().unwrap_or_default();
        let port = spec.health_check_node_port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        let local = spec.external_traffic_policy.as_deref() == Some("Local");
        let (Some(port), true, None) = (port, local, deletion_timestamp) else {
            tracing::warn!(service = name, "the fence's Service is not as it was made; it is made anew");
            return Ok(None);
        };
        let annotation = annotations.as_ref().and_then(|all| all.get(SLICES)?.parse().ok());
        let of_service = ListParams::default().labels(&format!("{SERVICE_LABEL}={name}"));
        let slices = self.ask(self.slices().list(&of_service)).await?.items;
        let mut versions = BTreeMap::new();
        for slice in &slices {
            let number = slice.metadata.name.as_deref().and_then(|slice| number_of(&name, slice));
            let version = slice.metadata.resource_version.clone();
            let (Some(number), Some(version)) = (number, version) else {
                tracing::warn!(service = name, "there is a slice of the fence's Service that it has not made");
                return Ok(None);
            };
            versions.insert(number, version);
        }
        let known_slices = annotation.unwrap_or(0);
        if (0..known_slices).any(|number| !versions.contains_key(&number)) {
            tracing::warn!(service = name, "a slice of the fence is gone; its Service is made anew");
            return Ok(None);
        }
        match Markers::read(family, &slices) {
            Ok(markers) => {
                let uid = uid.clone().unwrap_or_default();
                Ok(Some(Stored { family, service: name, port, uid, known_slices, markers, versions }))
            }
            Err(foreign) => {
                tracing::warn!(%foreign, "the fence's Service is made anew");
                Ok(None)
            }
        }
    }

    async fn create(&self, family: Family) -> Result<Stored, Refusal> {
        let service = json!({
            "metadata": {
                "generateName": format!("lastsyn-fence-{}-", label(family)),
                "labels": {FAMILY_LABEL: label(family), "app.kubernetes.io/part-of": "lastsyn"},
            },
            "spec": {
                "type": "LoadBalancer",
                "loadBalancerClass": CLASS,
                "allocateLoadBalancerNodePorts": false,
                "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Local",
                "ipFamilyPolicy": "SingleStack",
                "ipFamilies": [family.name()],
                "ports": [{"name": "none", "protocol": "TCP", "port": DISCARD}],
            },
        });
        let service: Service = serde_json::from_value(service).map_err(|error| Refusal::Failed(error.to_string()))?;
        let made = self.ask(self.services().create(&PostParams::default(), &service)).await?;
        let name = made.metadata.name.clone().unwrap_or_default();
        tracing::info!(service = name, %family, "the fence's Service is made");
        let none = "the API server gave the fence's Service no healthCheckNodePort".to_owned();
        self.read(family, &made).await?.ok_or(Refusal::Failed(none))
    }

    /// Removes a Service and its slices.
    async fn discard(&self, service: &Service) -> Result<(), Refusal> {
        let name = service.metadata.name.clone().unwrap_or_default();
        let slices = ListParams::default().labels(&format!("{SERVICE_LABEL}={name}"));
        for slice in self.ask(self.slices().list(&slices)).await?.items {
            let slice = slice.metadata.name.unwrap_or_default();
            gone(self.ask(self.slices().delete(&slice, &DeleteParams::default())).await)?;
        }
        gone(self.ask(self.services().delete(&name, &DeleteParams::default())).await)
    }

    /// Writes values: each slice that changes replaces the version that was read.
    ///
    /// # Errors
    /// See [`Refusal`]. Whatever it is, what the API has then is to be read again.
    pub(super) async fn write(
        &self,
        mut stored: Stored,
        values: &BTreeMap<NodeName, super::generation::Generation>,
        alive: &BTreeSet<NodeName>,
    ) -> Result<Stored, Refusal> {
        for number in stored.markers.set(values, alive) {
            let slice = self.slice(&stored, number);
            let name = format!("{}-{number}", stored.service);
            let slices = self.slices();
            let written = match stored.versions.get(&number) {
                Some(_) => self.ask(slices.replace(&name, &PostParams::default(), &slice)).await?,
                None => self.ask(slices.create(&PostParams::default(), &slice)).await?,
            };
            if written.endpoints.len() != slice.endpoints.len() {
                let why =
                    format!("the API server keeps {} of {} endpoints", written.endpoints.len(), slice.endpoints.len());
                return Err(Refusal::Failed(why));
            }
            stored.versions.insert(number, written.metadata.resource_version.unwrap_or_default());
        }
        let slices = stored.versions.len().try_into().unwrap_or(u32::MAX);
        if slices > stored.known_slices {
            let count = json!({"metadata": {"annotations": {SLICES: slices.to_string()}}});
            let patch = Patch::Merge(&count);
            self.ask(self.services().patch(&stored.service, &PatchParams::default(), &patch)).await?;
            stored.known_slices = slices;
        }
        Ok(stored)
    }

    fn slice(&self, stored: &Stored, number: u32) -> EndpointSlice {
        let labels = [
            (SERVICE_LABEL, stored.service.as_str()),
            ("endpointslice.kubernetes.io/managed-by", "fence.lastsyn.dev"),
            ("app.kubernetes.io/part-of", "lastsyn"),
        ];
        EndpointSlice {
            metadata: ObjectMeta {
                name: Some(format!("{}-{number}", stored.service)),
                namespace: Some(self.namespace.clone()),
                labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
                resource_version: stored.versions.get(&number).cloned(),
                owner_references: Some(vec![OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Service".to_owned(),
                    name: stored.service.clone(),
                    uid: stored.uid.clone(),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            address_type: stored.family.name().to_owned(),
            endpoints: stored.markers.endpoints(stored.family, number),
            ports: Some(vec![k8s_openapi::api::discovery::v1::EndpointPort {
                name: Some("none".to_owned()),
                port: Some(DISCARD),
                protocol: Some("TCP".to_owned()),
                ..Default::default()
            }]),
        }
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn slices(&self) -> Api<EndpointSlice> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn ask<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Refusal> {
        self.access.turn().await;
        match timeout(PATIENCE, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err((&error).into()),
            Err(_elapsed) => Err(Refusal::timed_out()),
        }
    }
}

/// What is not there is gone.
fn gone<T>(outcome: Result<T, Refusal>) -> Result<(), Refusal> {
    match outcome {
        Ok(_) | Err(Refusal::Absent) => Ok(()),
        Err(refusal) => Err(refusal),
    }
}

fn label(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    }
}

/// The number of a slice, by its name.
fn number_of(service: &str, slice: &str) -> Option<u32> {
    slice.strip_prefix(service)?.strip_prefix('-')?.parse().ok()
}
