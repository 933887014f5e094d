//! Where the API server is, and as whom it is asked.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube::{
    Client, Config as ClientConfig,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::time::Instant;
use tower::util::MapResponseLayer;

use crate::{
    config::{Config, FencePlace, Pod, RoutingSource},
    fence::window,
};

/// Set by kubelet in every container (`pkg/kubelet`, the master Service's variables).
const SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";

/// Where a development machine says which API server to use.
const KUBECONFIG: &str = "KUBECONFIG";

/// The longest `Retry-After` that is obeyed to the letter. No drain lasts longer.
const LONGEST_RETRY: Duration = Duration::from_mins(10);

/// How the API server is reached.
#[derive(Clone, Debug)]
pub struct Access {
    way: Way,
    heard: Arc<Heard>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// A service account's projected token.
    ServiceAccount,
    /// A file, named by `KUBECONFIG`.
    File(String),
    /// Through the fence, as a pod that is known by its address.
    Fence {
        /// Where it is.
        place: FencePlace,
        /// The pod's namespace and name.
        pod: (String, String),
    },
}

/// What the API server has said to this agent, over all its connections.
#[derive(Debug, Default)]
struct Heard {
    /// It has answered, with whatever.
    answered: AtomicBool,
    /// `Retry-After`: no request before this.
    not_before: Mutex<Option<Instant>>,
}

/// There is no way to an API server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The service account's token or certificates cannot be read.
    #[error("the pod has no service account token that can be read ({0}); mount one, for the agent's container alone")]
    ServiceAccount(#[source] kube::config::InClusterError),
    /// The file that `KUBECONFIG` names cannot be used.
    #[error("the file that KUBECONFIG names cannot be used: {0}")]
    File(#[source] kube::config::KubeconfigError),
    /// The fence is to be asked, and who asks is not known.
    #[error(
        "routing.source is fence, and the pod's name and namespace are not known: set POD_NAME and POD_NAMESPACE by the \
         downward API"
    )]
    Nameless,
    /// The client cannot be made of it.
    #[error("no client can be made of the API server's address and certificates: {0}")]
    Client(#[source] kube::Error),
}

impl Access {
    /// As the operator chose: through the fence, or by what the environment says; `None` outside of a cluster.
    pub fn of(config: &Config) -> Option<Self> {
        match (config.routing.source, config.routing.fence.place()) {
            (RoutingSource::Fence, Some(place)) => {
                let pod = (config.pod.namespace.clone(), config.pod.name.clone());
                Some(Self { way: Way::Fence { place: place.clone(), pod }, heard: Arc::default() })
            }
            _ => Self::by_environment(),
        }
    }

    /// By what the environment says; `None` outside of a cluster, without `KUBECONFIG`.
    pub fn by_environment() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
        let way = match (variable(KUBECONFIG), variable(SERVICE_HOST)) {
            (Some(file), _) => Way::File(file),
            (None, Some(_)) => Way::ServiceAccount,
            (None, None) => return None,
        };
        Some(Self { way, heard: Arc::default() })
    }

    /// By a file in kubeconfig's form.
    pub fn by_file(path: &str) -> Self {
        Self { way: Way::File(path.to_owned()), heard: Arc::default() }
    }

    /// How, for people.
    pub fn words(&self) -> String {
        match &self.way {
            Way::ServiceAccount => "by the pod's service account".to_owned(),
            Way::File(file) => format!("by {file}"),
            Way::Fence { place, .. } => format!("through the fence {place}"),
        }
    }

    /// A client, and its own namespace. Reads the token and the certificates anew: they rotate. Connections live no longer
    /// than the client and its copies.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub async fn client(&self, connect_timeout: Duration) -> Result<Client, AccessError> {
        let mut config = match &self.way {
            Way::Fence { place, pod } => through_the_fence(place, pod)?,
            Way::ServiceAccount => ClientConfig::incluster().map_err(AccessError::ServiceAccount)?,
            Way::File(file) => {
                let file = Kubeconfig::read_from(Path::new(file)).map_err(AccessError::File)?;
                ClientConfig::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                    .await
                    .map_err(AccessError::File)?
            }
        };
        config.connect_timeout = Some(connect_timeout);
        // Retries are made where they are known to be of use, and `Retry-After` counts for all requests together.
        config.default_retry = false;
        let heard = Arc::clone(&self.heard);
        let listen = MapResponseLayer::new(move |response: hyper::Response<_>| {
            heard.hear(response.status(), response.headers());
            response
        });
        let builder = ClientBuilder::try_from(config).map_err(AccessError::Client)?;
        Ok(builder.with_layer(&listen).build())
    }

    /// Whether the API server has ever answered this agent, with whatever.
    pub fn has_answered(&self) -> bool {
        self.heard.answered.load(Ordering::Relaxed)
    }

    /// Waits for as long as the API server has asked to be left alone.
    pub async fn turn(&self) {
        let not_before = *self.heard.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(time) = not_before {
            tokio::time::sleep_until(time).await;
        }
    }
}

impl Heard {
    fn hear(&self, status: hyper::StatusCode, headers: &hyper::HeaderMap) {
        self.answered.store(true, Ordering::Relaxed);
        if !(status == hyper::StatusCode::TOO_MANY_REQUESTS || status.is_server_error()) {
            return;
        }
        let seconds = headers.get(hyper::header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(seconds) = seconds {
            let time = Instant::now() + Duration::from_secs(seconds).min(LONGEST_RETRY);
            let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
            *not_before = (*not_before).max(Some(time));
        }
    }
}

/// What the fence shows a pod is the API server's own interface, over plain HTTP and without a token.
fn through_the_fence(place: &FencePlace, (namespace, name): &(String, String)) -> Result<ClientConfig, AccessError> {
    if namespace.is_empty() || name.is_empty() {
        return Err(AccessError::Nameless);
    }
    let url = format!("http://{}{}/{namespace}/{name}", place.authority(), window::PATH);
    let mut config = ClientConfig::new(url.parse().map_err(|_invalid| AccessError::Nameless)?);
    config.default_namespace.clone_from(namespace);
    // There is no TLS, and so nobody's certificates are read.
    config.root_cert = Some(Vec::new());
    Ok(config)
}

/// The namespace of the pod: as it was told, or else that of the client.
pub fn namespace(pod: &Pod, client: &Client) -> String {
    if pod.namespace.is_empty() { client.default_namespace().to_owned() } else { pod.namespace.clone() }
}
