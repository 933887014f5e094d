//! etcd, kube-apiserver and kube-controller-manager in a namespace of their own.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

use super::{
    addresses::{API_PORT, API_SERVICE, CONTROL_PLANE_V4, CONTROL_PLANE_V6, SERVICE_RANGES},
    api::Api,
    binaries,
    certificates::{Authority, Identity},
    kubeconfig,
};
use crate::{Host, Process, wait::await_condition};

/// The name of the node that has a kubelet, where one has.
pub(crate) const KUBELET_NODE: &str = "node-d";

/// Many times what each needs on an idle machine.
const START: Duration = Duration::from_mins(3);

/// Only what Services, Deployments, Pods, and their accounts need.
const CONTROLLERS: &str = "endpointslice-controller,serviceaccount-controller,serviceaccount-token-controller,\
                           namespace-controller,root-ca-certificate-publisher-controller,\
                           garbage-collector-controller,deployment-controller,replicaset-controller";

/// The processes, the last one started first, for that is how they end.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    pub(crate) api: Api,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) proxy_identity: Identity,
    pub(crate) kubelet_identity: Identity,
    pub(crate) authority: PathBuf,
    _controller_manager: Process,
    _api_server: Process,
    _etcd: Process,
    pub(crate) host: Host,
}

// === impl ControlPlane ===

impl ControlPlane {
    /// Starts it in a host that has its addresses, and waits until it takes Pods.
    pub(crate) fn start(host: Host) -> Result<Self> {
        let directory = host.directory().join("control-plane");
        std::fs::create_dir(&directory).with_context(|| format!("{} was not made", directory.display()))?;
        let authority = Authority::new(&directory)?;
        let admin = authority.client("admin", "admin", Some("system:masters"))?;
        let manager = authority.client("controller-manager", "system:kube-controller-manager", None)?;
        let proxy_identity = authority.client("kube-proxy", "system:kube-proxy", None)?;
        let kubelet_identity =
            authority.client("kubelet", &format!("system:node:{KUBELET_NODE}"), Some("system:nodes"))?;
        let accounts = authority.key_pair("service-accounts")?;
        let certificate = authority.certificate();
        let server = server_url();
        let kubeconfig = kubeconfig::write(&directory.join("admin.kubeconfig"), &server, &certificate, &admin)?;
        let manager = kubeconfig::write(&directory.join("manager.kubeconfig"), &server, &certificate, &manager)?;

        let etcd = etcd(&host, &directory)?;
        let api_server = api_server(&host, &authority, &admin, &accounts)?;
        let api = Api::connect(&host, &kubeconfig)?;
        await_answer(&api, "/readyz", &[&etcd, &api_server])?;
        let controller_manager = controller_manager(&host, &manager, &accounts, &certificate)?;
        await_answer(&api, "/api/v1/namespaces/default/serviceaccounts/default", &[&api_server, &controller_manager])?;
        Ok(Self {
            api,
            kubeconfig,
            proxy_identity,
            kubelet_identity,
            authority: certificate,
            _controller_manager: controller_manager,
            _api_server: api_server,
            _etcd: etcd,
            host,
        })
    }
}

/// Where clients outside of pods find the API server.
pub(crate) fn server_url() -> String {
    format!("https://{CONTROL_PLANE_V4}:{API_PORT}")
}

/// Starts a program of Kubernetes without the caller's environment, which may send it to a proxy.
pub(crate) fn start(host: &Host, program: &str, arguments: &[(&str, String)]) -> Result<Process> {
    start_by(host, program, arguments, SEARCH_PATH)
}

/// The same with another path for the programs that it starts.
pub(crate) fn start_by(host: &Host, program: &str, arguments: &[(&str, String)], search_path: &str) -> Result<Process> {
    let mut command = host.command(binaries::find(program)?)?;
    command.env_clear().env("PATH", search_path);
    for (flag, value) in arguments {
        command.arg(format!("--{flag}={value}"));
    }
    Process::start(format!("{program} in {}", host.role()), &mut command)
}

/// Where `nft` and `iptables` are.
pub(crate) const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn etcd(host: &Host, directory: &Path) -> Result<Process> {
    let [clients, peers] = ["http://127.0.0.1:2379", "http://127.0.0.1:2380"].map(str::to_owned);
    start(
        host,
        "etcd",
        &[
            ("data-dir", directory.join("etcd").display().to_string()),
            ("unsafe-no-fsync", "true".to_owned()),
            ("listen-client-urls", clients.clone()),
            ("advertise-client-urls", clients),
            ("listen-peer-urls", peers),
            ("log-level", "warn".to_owned()),
        ],
    )
}

fn api_server(host: &Host, authority: &Authority, admin: &Identity, accounts: &Identity) -> Result<Process> {
    let addresses = [CONTROL_PLANE_V4.into(), CONTROL_PLANE_V6.into(), std::net::Ipv4Addr::LOCALHOST.into()];
    let serving = authority.server("apiserver", addresses.into_iter().chain(API_SERVICE))?;
    let file = |path: &Path| path.display().to_string();
    start(
        host,
        "kube-apiserver",
        &[
            ("etcd-servers", "http://127.0.0.1:2379".to_owned()),
            ("bind-address", CONTROL_PLANE_V4.to_string()),
            ("advertise-address", CONTROL_PLANE_V4.to_string()),
            ("secure-port", API_PORT.to_string()),
            ("endpoint-reconciler-type", "none".to_owned()),
            ("service-cluster-ip-range", SERVICE_RANGES.to_owned()),
            ("client-ca-file", file(&authority.certificate())),
            ("tls-cert-file", file(&serving.certificate)),
            ("tls-private-key-file", file(&serving.key)),
            ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
            ("service-account-signing-key-file", file(&accounts.key)),
            ("service-account-key-file", file(&accounts.certificate)),
            ("authorization-mode", "Node,RBAC".to_owned()),
            ("allow-privileged", "true".to_owned()),
            ("profiling", "false".to_owned()),
            ("enable-priority-and-fairness", "false".to_owned()),
            ("kubelet-client-certificate", file(&admin.certificate)),
            ("kubelet-client-key", file(&admin.key)),
        ],
    )
}

fn controller_manager(host: &Host, kubeconfig: &Path, accounts: &Identity, authority: &Path) -> Result<Process> {
    let kubeconfig = kubeconfig.display().to_string();
    start(
        host,
        "kube-controller-manager",
        &[
            ("kubeconfig", kubeconfig.clone()),
            ("authentication-kubeconfig", kubeconfig.clone()),
            ("authorization-kubeconfig", kubeconfig),
            ("leader-elect", "false".to_owned()),
            ("bind-address", "127.0.0.1".to_owned()),
            // Without it the controllers are refused by RBAC.
            ("use-service-account-credentials", "true".to_owned()),
            ("service-account-private-key-file", accounts.key.display().to_string()),
            ("root-ca-file", authority.display().to_string()),
            ("controllers", CONTROLLERS.to_owned()),
        ],
    )
}

fn await_answer(api: &Api, path: &str, needed: &[&Process]) -> Result<()> {
    let mut last = None;
    await_condition(&format!("the API server's answer for {path}"), START, || {
        if let Some(ended) = needed.iter().find_map(|process| process.ensure_running().err()) {
            return Some(Err(ended));
        }
        match api.text(path) {
            Ok(_) => Some(Ok(())),
            Err(error) => {
                last = Some(error);
                None
            }
        }
    })
    .with_context(|| format!("the last try: {}", last.map_or_else(String::new, |error| format!("{error:#}"))))
    .and_then(|outcome| outcome)
}
