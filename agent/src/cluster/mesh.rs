//! W8: a mesh whose proxy takes the pod's connections. Its clients choose endpoints by themselves, not by the nodes' rules, and what
//! they open anew goes through connections that were there before: neither kube-proxies nor SYNs speak for it.
//!
//! It is known by the pod's own object, as injectors write it, by the ports that its proxy listens on, and, where neither names
//! one, by netfilter rules in the pod that lead incoming connections to another port.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use crate::{
    core::{event::Depth, verdict::NotObserved},
    netfilter, sockets,
};

/// Its name where only netfilter rules show it.
const REDIRECT: &str = "redirect";

/// A mesh, by what it leaves in a pod.
struct Mesh {
    name: &'static str,
    /// An annotation, and its value where it has to have one. Istio: `sidecar.istio.io/status` by the injector, and
    /// `ambient.istio.io/redirection` by its network plugin; Linkerd: by its injector.
    annotations: &'static [(&'static str, Option<&'static str>)],
    /// Its proxy's container.
    container: &'static str,
    /// Ports that its proxy listens on, at other addresses than loopback. One alone may be anybody's.
    ports: [u16; 2],
}

const MESHES: [Mesh; 2] = [
    Mesh {
        name: "istio",
        annotations: &[("sidecar.istio.io/status", None), ("ambient.istio.io/redirection", Some("enabled"))],
        container: "istio-proxy",
        // Outbound and inbound, in a sidecar and, with 15008, in ambient mode.
        ports: [15_001, 15_006],
    },
    Mesh {
        name: "linkerd",
        annotations: &[("linkerd.io/proxy-version", None)],
        container: "linkerd-proxy",
        // Inbound, and the proxy's own.
        ports: [4143, 4191],
    },
];

/// The meshes that the pod's own object shows.
pub(super) fn of_pod(pod: &Pod) -> Vec<NotObserved> {
    let spec = pod.spec.as_ref();
    let containers = spec.map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let names: BTreeSet<&str> = containers.into_iter().flatten().map(|container| container.name.as_str()).collect();
    let annotations = pod.metadata.annotations.as_ref();
    let sign = |mesh: &Mesh| {
        let has = |(key, wanted): &&(&str, Option<&str>)| {
            let value = annotations.and_then(|annotations| annotations.get(*key));
            value.is_some_and(|value| wanted.is_none_or(|wanted| value == wanted))
        };
        let annotation = mesh.annotations.iter().find(has).map(|(key, _)| format!("the pod has the annotation {key}"));
        let container =
            || names.contains(mesh.container).then(|| format!("the pod has a container {}", mesh.container));
        annotation.or_else(container)
    };
    MESHES.iter().filter_map(|mesh| Some(unseen(mesh, &sign(mesh)?))).collect()
}

/// The meshes whose proxies listen in the agent's network namespace. None where the sockets cannot be read, which the sensor
/// tells of.
pub(super) fn of_listeners() -> Vec<NotObserved> {
    let listeners =
        sockets::read(Depth::Listeners, &BTreeSet::new()).map(|sockets| sockets.listeners).unwrap_or_default();
    of_ports(&listeners.keys().map(|port| port.number()).collect())
}

/// What leads incoming connections of the agent's network namespace elsewhere. Where the rules cannot be read, as without
/// `CAP_NET_ADMIN`, the pod's object and its listeners are all that a mesh is known by.
pub(super) fn of_netfilter() -> Option<NotObserved> {
    match netfilter::redirect() {
        Ok(found) => found.map(|redirect| NotObserved {
            what: "mesh".to_owned(),
            name: Some(REDIRECT.to_owned()),
            family: None,
            why: format!(
                "{redirect} leads incoming connections to another port: what listens there may keep connections, in which \
                 new ones come that no SYN tells of"
            ),
        }),
        Err(error) => {
            tracing::debug!(%error, "whether netfilter rules lead incoming connections elsewhere is not known");
            None
        }
    }
}

fn of_ports(open: &BTreeSet<u16>) -> Vec<NotObserved> {
    let listens = |mesh: &&Mesh| mesh.ports.iter().all(|port| open.contains(port));
    let sign = |mesh: &Mesh| {
        let [first, second] = mesh.ports;
        format!("something listens on its proxy's ports {first} and {second}")
    };
    MESHES.iter().filter(listens).map(|mesh| unseen(mesh, &sign(mesh))).collect()
}

fn unseen(mesh: &Mesh, sign: &str) -> NotObserved {
    let why = format!("{sign}: its clients choose endpoints by themselves, and reuse connections");
    NotObserved { what: "mesh".to_owned(), name: Some(mesh.name.to_owned()), family: None, why }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn names(found: &[NotObserved]) -> Vec<&str> {
        found.iter().filter(|one| one.what == "mesh").filter_map(|one| one.name.as_deref()).collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "made in place by json!")]
    fn pod(annotations: Value, containers: [&str; 2]) -> Vec<NotObserved> {
        let [main, init] = containers;
        let pod = json!({
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"name": main}], "initContainers": [{"name": init, "restartPolicy": "Always"}]},
        });
        of_pod(&serde_json::from_value(pod).expect("a pod"))
    }

    #[test]
    fn w8_a_mesh_is_named_by_what_its_injector_leaves_in_the_pod() {
        let plain = ["web", "lastsyn"];
        for (annotations, containers, expected) in [
            (json!({}), plain, &[][..]),
            (json!({"sidecar.istio.io/status": "{}"}), plain, &["istio"]),
            (json!({"ambient.istio.io/redirection": "enabled"}), plain, &["istio"]),
            (json!({"ambient.istio.io/redirection": "disabled"}), plain, &[]),
            (json!({"sidecar.istio.io/inject": "true"}), plain, &[]),
            (json!({"linkerd.io/proxy-version": "edge-1"}), plain, &["linkerd"]),
            (json!({"linkerd.io/inject": "enabled"}), plain, &[]),
            (json!({}), ["istio-proxy", "lastsyn"], &["istio"]),
            (json!({}), ["web", "linkerd-proxy"], &["linkerd"]),
        ] {
            assert_eq!(names(&pod(annotations.clone(), containers)), expected, "{annotations} {containers:?}");
        }
        let both = pod(json!({"sidecar.istio.io/status": "{}"}), ["istio-proxy", "web"]);
        assert_eq!(both.len(), 1, "{both:?}");
        assert!(both[0].why.starts_with("the pod has the annotation sidecar.istio.io/status: "), "{both:?}");
    }

    #[test]
    fn w8_a_mesh_is_named_by_its_proxy_s_ports_and_not_by_one_alone() {
        let of = |ports: &[u16]| of_ports(&ports.iter().copied().collect());
        assert_eq!(names(&of(&[15_001, 15_006, 80])), ["istio"]);
        assert_eq!(names(&of(&[15_001, 15_006, 15_008, 80])), ["istio"]);
        assert_eq!(names(&of(&[4143, 4191])), ["linkerd"]);
        for alone in [15_001, 15_006, 15_008, 4143, 4191, 80] {
            assert_eq!(of(&[alone]), [], "{alone}");
        }
    }
}
