//! Why nothing was injected.

/// What is wrong with the manifests, or with the workload among them.
#[derive(Debug, thiserror::Error)]
pub(super) enum InjectError {
    #[error("standard input cannot be read: {0}")]
    Input(#[from] std::io::Error),
    #[error("standard input is empty: give it manifests, such as `lastsyn inject < web.yaml`")]
    Empty,
    #[error("document {number}, from line {line} on, is no YAML that can be read: {error}")]
    Document { number: usize, line: usize, error: Box<serde_saphyr::Error> },
    #[error("what was made cannot be written as YAML: {0}")]
    Write(Box<serde_saphyr::ser::Error>),
    #[error("there is no Deployment, DaemonSet or StatefulSet in these manifests")]
    NoWorkload,
    #[error("{wanted} is not in these manifests; there is {there}")]
    NotThere { wanted: String, there: String },
    #[error("there are several workloads, and one has to be named: {0}")]
    Several(String),
    #[error("{workload}: {what} is missing, or is not what Kubernetes has there")]
    Shape { workload: String, what: &'static str },
    #[error("{workload}: its pods are for Windows nodes, and the agent needs Linux")]
    Windows { workload: String },
    #[error(
        "{workload}: container {container} has a preStop hook already, and a container has one alone; --replace-hook puts \
         `lastsyn drain` in its place"
    )]
    Hook { workload: String, container: String },
    #[error("{workload}: it has no container {container}, which --container names")]
    NoContainer { workload: String, container: String },
    #[error("{workload}: no container has ports, and there are several: name the one that listens with --container")]
    NobodyListens { workload: String },
    #[error("{workload}: {what} is there already, and not the agent's; rename it")]
    Taken { workload: String, what: String },
    #[error(
        "{workload}: its pods have the ServiceAccount {account}, whose rights they would lose; --service-account {account} keeps \
         it"
    )]
    Account { workload: String, account: String },
    #[error("{workload}: its pods have the ServiceAccount {account}, and --service-account names {named}")]
    OtherAccount { workload: String, account: String, named: String },
    #[error(
        "{workload}: its pods have hostUsers: false, with which the kernel refuses what --security {security} is for: use net-raw or none"
    )]
    UserNamespace { workload: String, security: &'static str },
    #[error(
        "{workload}: its pods have hostNetwork and name no TCP port, and the agent cannot tell which of the node's are theirs"
    )]
    NoPorts { workload: String },
    #[error("{workload}: its namespace is {namespace}, and --namespace names {named}")]
    Namespace { workload: String, namespace: String, named: String },
}
