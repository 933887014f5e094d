//! What the agent in a pod may ask of the API server: a `ServiceAccount` with a role of exactly some rights, and its token
//! where a kubelet puts it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{
    Api,
    addresses::{API_PORT, CONTROL_PLANE_V4},
};
use crate::AgentConfig;

/// Mounts the token where clients in a pod look for it, in a mount namespace of the process's own, and becomes the command.
const MOUNT: &str = "mount -t tmpfs lab /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount && \
                     mount --bind \"$0\" /run/secrets/kubernetes.io/serviceaccount && exec \"$@\"";

/// A right that the agent makes use of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// List and watch of `EndpointSlices` in the namespace.
    Slices,
    /// List and watch of Services in the namespace.
    Services,
    /// List of nodes.
    Nodes,
    /// Get of pods in the namespace.
    Pod,
    /// Create of Events in the namespace: not among all, as it is asked for by itself.
    Events,
}

/// A right of the fence everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceRight {
    /// List of `EndpointSlices`.
    ListSlices,
    /// List and watch of `EndpointSlices`.
    Slices,
    /// List and watch of Services.
    Services,
    /// Get of pods.
    Pods,
}

/// A `ServiceAccount` and its token.
#[derive(Clone, Debug)]
pub struct Access {
    directory: PathBuf,
    server: String,
    port: u16,
    /// A file that names the API server in place of these.
    kubeconfig: Option<PathBuf>,
}

// === impl Right ===

impl Right {
    /// All of them that a drain makes use of.
    pub const ALL: [Self; 4] = [Self::Slices, Self::Services, Self::Nodes, Self::Pod];

    /// Whether it is one for the whole cluster, and the rule that grants it.
    pub fn rule(self) -> (bool, Value) {
        let (group, resource, verbs): (_, _, &[&str]) = match self {
            Self::Slices => ("discovery.k8s.io", "endpointslices", &["list", "watch"]),
            Self::Services => ("", "services", &["list", "watch"]),
            Self::Nodes => ("", "nodes", &["list"]),
            Self::Pod => ("", "pods", &["get"]),
            Self::Events => ("events.k8s.io", "events", &["create"]),
        };
        (self == Self::Nodes, json!({"apiGroups": [group], "resources": [resource], "verbs": verbs}))
    }
}

// === impl FenceRight ===

impl FenceRight {
    /// By which it sees who asks.
    pub const DOOR: [Self; 2] = [Self::ListSlices, Self::Pods];

    /// By which it tells pods of the cluster as well.
    pub const SOURCE: [Self; 3] = [Self::Slices, Self::Services, Self::Pods];

    /// Everything that a fence with these rights is granted: whether it is for the whole cluster, and the rule.
    pub fn rules(everywhere: &[Self]) -> Vec<(bool, Value)> {
        let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        let writes = ["list", "create", "update", "delete"];
        let mut rules = vec![
            (false, rule("discovery.k8s.io", "endpointslices", &writes)),
            (false, rule("", "services", &["list", "create", "patch", "delete"])),
            (false, rule("coordination.k8s.io", "leases", &["get", "create", "update"])),
            (true, rule("", "nodes", &["list"])),
        ];
        rules.extend(everywhere.iter().map(|right| {
            let (group, resource, verbs): (_, _, &[&str]) = match right {
                Self::ListSlices => ("discovery.k8s.io", "endpointslices", &["list"]),
                Self::Slices => ("discovery.k8s.io", "endpointslices", &["list", "watch"]),
                Self::Services => ("", "services", &["list", "watch"]),
                Self::Pods => ("", "pods", &["get"]),
            };
            (true, rule(group, resource, verbs))
        }));
        rules
    }
}

// === impl Access ===

impl Access {
    /// Makes the `ServiceAccount` called `name` in the namespace `default`, with roles of the same name, and asks for a token.
    pub(crate) fn grant(api: &Api, name: &str, rights: &[Right], directory: &Path, authority: &Path) -> Result<Self> {
        let rules = rights.iter().map(|right| right.rule()).collect::<Vec<_>>();
        Self::grant_rules(api, (name, "default"), &rules, directory, authority)
    }

    /// The same for a replica of the fence, which writes in a namespace and lists nodes. `asks` are its rights everywhere.
    pub(crate) fn grant_fence(
        api: &Api,
        (name, namespace): (&str, &str),
        asks: &[FenceRight],
        directory: &Path,
        authority: &Path,
    ) -> Result<Self> {
        Self::grant_rules(api, (name, namespace), &FenceRight::rules(asks), directory, authority)
    }

    /// By rules, and whether each is one for the whole cluster.
    fn grant_rules(
        api: &Api,
        (name, namespace): (&str, &str),
        rights: &[(bool, Value)],
        directory: &Path,
        authority: &Path,
    ) -> Result<Self> {
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let metadata = json!({"name": name});
        api.post(accounts, &json!({"metadata": metadata}))?;
        let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
        let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": "default"}]);
        let own = format!("namespaces/{namespace}/");
        for (scope, kind, of_cluster) in [(own.as_str(), "Role", false), ("", "ClusterRole", true)] {
            let rules = rights.iter().filter(|(wide, _)| *wide == of_cluster);
            let rules: Vec<Value> = rules.map(|(_, rule)| rule.clone()).collect();
            let plural = format!("{rbac}/{scope}{}s", kind.to_lowercase());
            api.post(&plural, &json!({"metadata": metadata, "rules": rules}))?;
            let bindings = format!("{rbac}/{scope}{}bindings", kind.to_lowercase());
            api.post(&bindings, &json!({"metadata": metadata, "roleRef": role(kind), "subjects": subjects}))?;
        }
        Self::of_account(api, name, directory, authority)
    }

    /// Asks for a token of a `ServiceAccount` of the namespace `default` that is there, with whatever rights it has.
    pub(crate) fn of_account(api: &Api, name: &str, directory: &Path, authority: &Path) -> Result<Self> {
        let path = format!("/api/v1/namespaces/default/serviceaccounts/{name}/token");
        let answer = api.post(&path, &json!({"spec": {"expirationSeconds": 3600}}))?;
        let token = answer.pointer("/status/token").and_then(Value::as_str).context("no token was given")?;

        let directory = directory.join(format!("account-{name}"));
        fs::create_dir(&directory).with_context(|| format!("{} was not made", directory.display()))?;
        let authority =
            fs::read_to_string(authority).with_context(|| format!("{} cannot be read", authority.display()))?;
        for (file, text) in [("token", token), ("namespace", "default"), ("ca.crt", &authority)] {
            fs::write(directory.join(file), text).with_context(|| format!("{file} was not written"))?;
        }
        Ok(Self { directory, server: CONTROL_PLANE_V4.to_string(), port: API_PORT, kubeconfig: None })
    }

    /// The same with an API server where there is none: nothing answers.
    #[must_use]
    pub fn unreachable(&self) -> Self {
        // An address of the control plane's wires that nobody has.
        Self { server: "10.10.0.99".to_owned(), ..self.clone() }
    }

    /// The file of a client at this URL that is this `ServiceAccount`.
    pub(crate) fn kubeconfig(&self, server: &str, authority: &Path) -> Result<PathBuf> {
        let user = json!({"tokenFile": self.directory.join("token")});
        self.write("kubeconfig", &json!({"server": server, "certificate-authority": authority}), &user)
    }

    /// The same through a proxy at this URL, which is this `ServiceAccount` itself.
    pub(crate) fn through(&self, proxy: &str) -> Result<Self> {
        let kubeconfig = self.write("proxy.kubeconfig", &json!({"server": proxy}), &json!({}))?;
        Ok(Self { kubeconfig: Some(kubeconfig), ..self.clone() })
    }

    fn write(&self, file: &str, cluster: &Value, user: &Value) -> Result<PathBuf> {
        let path = self.directory.join(file);
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab", "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "current-context": "lab",
        });
        fs::write(&path, text.to_string()).with_context(|| format!("{} was not written", path.display()))?;
        Ok(path)
    }

    /// An agent that has it, as every container of a pod has.
    #[must_use]
    pub fn give_to(&self, config: AgentConfig) -> AgentConfig {
        if let Some(kubeconfig) = &self.kubeconfig {
            return config.env("KUBECONFIG", kubeconfig.display().to_string());
        }
        let directory = self.directory.display().to_string();
        config
            .env("KUBERNETES_SERVICE_HOST", &self.server)
            .env("KUBERNETES_SERVICE_PORT", self.port.to_string())
            .through(["unshare", "--mount", "sh", "-c", MOUNT, &directory])
    }
}
