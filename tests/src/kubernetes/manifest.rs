//! Manifests for the API server: where each kind goes, and whether it would be taken.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Api, Refused};
use crate::manifests;

/// The kinds that manifests here have: group and version, plural, and whether they belong into a namespace.
const KINDS: [(&str, &str, &str, bool); 21] = [
    ("Namespace", "api/v1", "namespaces", false),
    ("Pod", "api/v1", "pods", true),
    ("Service", "api/v1", "services", true),
    ("ServiceAccount", "api/v1", "serviceaccounts", true),
    ("ConfigMap", "api/v1", "configmaps", true),
    ("Secret", "api/v1", "secrets", true),
    ("Deployment", "apis/apps/v1", "deployments", true),
    ("DaemonSet", "apis/apps/v1", "daemonsets", true),
    ("StatefulSet", "apis/apps/v1", "statefulsets", true),
    ("Job", "apis/batch/v1", "jobs", true),
    ("PodDisruptionBudget", "apis/policy/v1", "poddisruptionbudgets", true),
    ("NetworkPolicy", "apis/networking.k8s.io/v1", "networkpolicies", true),
    ("Role", "apis/rbac.authorization.k8s.io/v1", "roles", true),
    ("RoleBinding", "apis/rbac.authorization.k8s.io/v1", "rolebindings", true),
    ("ClusterRole", "apis/rbac.authorization.k8s.io/v1", "clusterroles", false),
    ("ClusterRoleBinding", "apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", false),
    ("CustomResourceDefinition", "apis/apiextensions.k8s.io/v1", "customresourcedefinitions", false),
    ("PodMonitor", "apis/monitoring.coreos.com/v1", "podmonitors", true),
    ("ServiceMonitor", "apis/monitoring.coreos.com/v1", "servicemonitors", true),
    ("PrometheusRule", "apis/monitoring.coreos.com/v1", "prometheusrules", true),
    ("EnvoyProxy", "apis/gateway.envoyproxy.io/v1alpha1", "envoyproxies", true),
];

/// Nothing is kept, and a field that the kind does not have is a refusal.
const DRY_RUN: &str = "?dryRun=All&fieldValidation=Strict";

// === impl Api ===

impl Api {
    /// Whether the API server would take a manifest, after every check but those of a controller. A field that it does not know is
    /// a refusal. Where the manifest names no namespace, it is for `default`. The inner error is its refusal.
    ///
    /// # Errors
    ///
    /// When it does not answer, or it is not known here where the kind goes.
    pub fn dry_run(&self, manifest: &Value) -> Result<Result<(), Refused>> {
        match self.post(&format!("{}{DRY_RUN}", collection(manifest)?), manifest) {
            Ok(_) => Ok(Ok(())),
            Err(error) => error.downcast::<Refused>().map(Err),
        }
    }

    /// Creates what a manifest says.
    ///
    /// # Errors
    ///
    /// When the API server refuses ([`Refused`]) or does not answer.
    pub fn create(&self, manifest: &Value) -> Result<()> {
        self.post(&collection(manifest)?, manifest).map(drop)
    }

    /// Creates a namespace, with the level of Pod Security that it enforces.
    ///
    /// # Errors
    ///
    /// When the API server refuses ([`Refused`]) or does not answer.
    pub fn create_namespace(&self, name: &str, enforced: &str) -> Result<()> {
        let labels = json!({"pod-security.kubernetes.io/enforce": enforced});
        self.create(&json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}}))
    }
}

/// The path of the collection that a manifest goes to.
fn collection(manifest: &Value) -> Result<String> {
    let kind = manifests::kind(manifest);
    let (_, group, plural, in_namespace) = KINDS
        .iter()
        .find(|(known, ..)| *known == kind)
        .with_context(|| format!("it is not known here where a manifest of the kind `{kind}` goes: add it to KINDS"))?;
    let version = manifest.get("apiVersion").and_then(Value::as_str).unwrap_or(group);
    anyhow::ensure!(group.ends_with(version), "{kind} is of {group}, and not of {version}");
    if !in_namespace {
        return Ok(format!("/{group}/{plural}"));
    }
    let namespace = manifest.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default");
    Ok(format!("/{group}/namespaces/{namespace}/{plural}"))
}
