//! A pod with Envoy as Envoy Gateway makes it, on the node that has a kubelet, and two ways to shut it down.

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    Cluster, KubeletPod, PORT,
    kubelet::ENVOY_IMAGE,
    pod_template::{agent, drain, pod, socket},
};
use crate::envoy::{ADMIN, OPTIONS, READINESS, configure};

/// The sequence of Envoy Gateway's shutdown manager (1.9) with its defaults: `healthCheckFailureDelay: 0s`, `minDrainDuration:
/// 10s`, `drainTimeout: 60s`. It looks for connections every second, at those of clients' listeners alone.
const PUBLISHED: &str = r#"
wget -q -O /dev/null --post-data '' http://127.0.0.1:ADMIN/healthcheck/fail
seconds=0
while [ $seconds -le 60 ]; do
    sleep 1
    seconds=$((seconds + 1))
    [ $seconds -gt 10 ] || continue
    active=$(wget -q -O - 'http://127.0.0.1:ADMIN/stats?filter=downstream_cx_active' |
        awk -F ': ' '/^listener\./ && !/admin|19001|19003|worker/ { sum += $2 } END { print sum + 0 }')
    [ "$active" -gt 0 ] || break
done"#;

/// How the pod is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// By the sequence that Envoy Gateway publishes: readiness fails first of all.
    Published,
    /// By the agent as it is by default, told of Envoy.
    Agent,
}

impl Shutdown {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Published, Self::Agent];

    /// The name of the way, of the pod that has it, and of what its Envoy answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Agent => "agent",
        }
    }
}

// === impl KubeletPod ===

impl<'a> KubeletPod<'a> {
    /// A pod with Envoy on [`PORT`] and the readiness probe of Envoy Gateway, named after the way in which it is shut down.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn envoy(cluster: &'a Cluster, app: &str, account: &str, shutdown: Shutdown) -> Result<Self> {
        let spec = match shutdown {
            Shutdown::Published => {
                let script = PUBLISHED.replace("ADMIN", &ADMIN.to_string());
                let hook = json!({"preStop": {"exec": {"command": ["sh", "-c", script]}}});
                pod(account, &[], &[envoy(shutdown.name(), &hook)])
            }
            Shutdown::Agent => {
                let mut agent = agent();
                if let Some(variables) = agent.pointer_mut("/env").and_then(Value::as_array_mut) {
                    variables.push(json!({"name": "LASTSYN_PROXY_KIND", "value": "envoy"}));
                }
                pod(account, &[agent], &[envoy(shutdown.name(), &drain(&[]))])
            }
        };
        Self::of(cluster, shutdown.name(), app, &spec)
    }
}

fn envoy(name: &str, hook: &Value) -> Value {
    let start = format!(
        "printf %s \"$CONFIGURATION\" > /tmp/envoy.json; exec envoy --config-path /tmp/envoy.json {}",
        OPTIONS.join(" ")
    );
    // Envoy Gateway's has a second for an answer, which a busy machine may not give in time.
    let probe = |period: u32, failures: u32| {
        json!({"httpGet": {"port": READINESS, "path": "/ready"}, "periodSeconds": period, "failureThreshold": failures,
               "timeoutSeconds": 5})
    };
    json!({
        "name": "envoy", "image": ENVOY_IMAGE, "imagePullPolicy": "Never",
        "command": ["sh", "-c", start],
        "env": [{"name": "CONFIGURATION", "value": configure(name, PORT).to_string()}],
        "ports": [{"name": "http", "containerPort": PORT}],
        "startupProbe": probe(1, 60),
        "readinessProbe": probe(5, 1),
        "lifecycle": hook,
        "volumeMounts": socket(),
    })
}
