//! W6 and W8: what could lead a connection to the pod and is not seen here, by name.

use std::collections::BTreeSet;

use super::{
    super::{
        cluster::{ServiceName, ServiceProxy},
        listener::Family,
        verdict::NotObserved,
    },
    backends::Backends,
    policies::Policies,
};

/// Of one Service and family that has listed the pod. `routing.accept` names an entry by `what` and `name`, as in
/// `headless/web`.
pub(super) fn of(
    service: &ServiceName,
    family: Family,
    backends: &Backends,
    policies: &Policies,
) -> BTreeSet<NotObserved> {
    let entry = |what: &str, why: String| NotObserved {
        what: what.to_owned(),
        name: Some(service.to_string()),
        family: Some(family),
        why,
    };
    let known = policies.get(service);
    let other_paths = backends.listed_for().chain(known.map(|service| service.proxy)).filter_map(|proxy| match proxy {
        ServiceProxy::KubeProxy => None,
        ServiceProxy::Headless => Some(entry(
            "headless",
            "clients of a headless Service find the pod's address in DNS and may keep it".to_owned(),
        )),
        ServiceProxy::Foreign => Some(entry(
            "service-proxy-name",
            "the Service is another proxy's (service.kubernetes.io/service-proxy-name), which is not asked".to_owned(),
        )),
    });
    let policy = policies.why_unreadable().filter(|_| backends.routable()).map(|why| {
        entry(
            "policy",
            format!("whether a policy of the Service is Local is not known, because Services cannot be read: {why}"),
        )
    });
    other_paths.chain(policy).collect()
}
