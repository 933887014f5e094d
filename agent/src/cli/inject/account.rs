//! Under which `ServiceAccount` the agent asks the cluster.

use super::{choices::Choices, error::InjectError, node::Node, rights};

/// The account that the pods get.
pub(super) struct Chosen {
    pub(super) name: String,
    /// It is the agent's, and comes with its rights. The other is the workload's own, and stays as it is.
    pub(super) made: bool,
}

/// # Errors
/// When the workload would lose the rights of its own account, or another is named.
pub(super) fn choose(title: &str, name: &str, pod: &Node, choices: &Choices) -> Result<Chosen, InjectError> {
    let own = ["serviceAccountName", "serviceAccount"].map(|key| pod.text_at(&[key]));
    let own = own.into_iter().find(|account| !account.is_empty());
    let workload = || title.to_owned();
    match (own, &choices.account) {
        (Some(account), Some(named)) if account != named => {
            Err(InjectError::OtherAccount { workload: workload(), account: account.to_owned(), named: named.clone() })
        }
        (_, Some(named)) => Ok(Chosen { name: named.clone(), made: false }),
        (own, None) => {
            let account = own.unwrap_or("default");
            // Who asks for the token of the default account makes use of it.
            let is_used = pod.get("automountServiceAccountToken") == Some(&Node::Bool(true));
            if account != "default" || is_used {
                return Err(InjectError::Account { workload: workload(), account: account.to_owned() });
            }
            Ok(Chosen { name: rights::account_name(name), made: true })
        }
    }
}
