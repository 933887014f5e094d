//! The environment: which variables are the agent's, and which Kubernetes put there.

use std::net::IpAddr;

use serde_json::Value;

use super::{
    ConfigError, FILE_VARIABLE,
    keys::{self, Key},
    layer::Layers,
    origin::{Origin, shorten},
    text,
};

const PREFIX: &str = "LASTSYN_";

/// The process's environment. A value that is not UTF-8 is kept with its bad bytes replaced; [`super::load`] refuses it
/// where the variable is the agent's.
pub fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect()
}

/// What manifests call what the downward API gives, and whose value it is where the agent's own variable does not say.
const DOWNWARD: [(&str, &str); 6] = [
    ("POD_NAME", "pod.name"),
    ("POD_NAMESPACE", "pod.namespace"),
    ("POD_UID", "pod.uid"),
    ("POD_IPS", "pod.ips"),
    ("NODE_NAME", "pod.nodeName"),
    ("HOST_IPS", "pod.hostIps"),
];

/// Takes a variable that manifests use for what the downward API gives. It is nobody's own name: a value that cannot be
/// meant is left alone, as it may be of somebody else.
pub(super) fn apply_downward(layers: &mut Layers, name: &str, value: &str) {
    let Some((_, key)) = DOWNWARD.iter().find(|(variable, _)| *variable == name) else { return };
    let addresses = key.ends_with("ips") || key.ends_with("Ips");
    let meant = !value.contains(char::REPLACEMENT_CHARACTER)
        && (!addresses || value.split(',').all(|address| address.trim().parse::<IpAddr>().is_ok()));
    if let Some(key) = keys::by_name(key).filter(|_| meant) {
        layers.set(key, Value::String(value.to_owned()), Origin::Environment(shorten(name)));
    }
}

/// Takes one variable, if it is the agent's.
pub(super) fn apply(layers: &mut Layers, name: &str, value: &str) -> Result<(), ConfigError> {
    let Some(rest) = name.strip_prefix(PREFIX) else { return Ok(()) };
    let origin = Origin::Environment(shorten(name));
    if value.contains(char::REPLACEMENT_CHARACTER) {
        return Err(ConfigError::VariableNotUtf8 { name: shorten(name) });
    }
    if let Some(key) = keys::by_variable(name) {
        layers.set(key, text::read(value), origin);
    } else if name != FILE_VARIABLE && !from_kubernetes(rest, value) {
        let candidates = keys::all().iter().map(Key::variable).chain([FILE_VARIABLE]);
        let nearest = keys::nearest(name, candidates).unwrap_or_default().to_owned();
        return Err(ConfigError::UnknownKey { key: shorten(name), origin, nearest });
    }
    Ok(())
}

/// Whether kubelet set the variable for a Service whose name begins with `lastsyn` (`enableServiceLinks`, on by
/// default): `…_SERVICE_HOST`, `…_SERVICE_PORT[_NAME]`, and Docker's link variables `…_PORT=tcp://…` and
/// `…_PORT_80_TCP[_PROTO|_PORT|_ADDR]`. Names as kubelet's `envvars.FromServices` makes them.
fn from_kubernetes(rest: &str, value: &str) -> bool {
    // A Service called just `lastsyn` leaves `SERVICE_HOST`, without anything in front.
    let rest = format!("_{rest}");
    if rest.ends_with("_SERVICE_HOST") || rest.ends_with("_SERVICE_PORT") || rest.contains("_SERVICE_PORT_") {
        return true;
    }
    if rest.ends_with("_PORT") && value.contains("://") {
        return true;
    }
    rest.match_indices("_PORT_").any(|(at, port)| {
        let after = rest.get(at + port.len()..).unwrap_or_default();
        let mut parts = after.split('_');
        let number = parts.next().is_some_and(|number| number.parse::<u16>().is_ok());
        let protocol = parts.next().is_some_and(|protocol| matches!(protocol, "TCP" | "UDP" | "SCTP"));
        number && protocol && matches!(parts.next(), None | Some("PROTO" | "PORT" | "ADDR")) && parts.next().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(name: &str, value: &str) -> Result<(), ConfigError> {
        apply(&mut Layers::defaults(), name, value)
    }

    #[test]
    fn leaves_the_variables_of_services_alone() {
        for (name, value) in [
            ("LASTSYN_SERVICE_HOST", "10.96.0.7"),
            ("LASTSYN_SERVICE_PORT", "19480"),
            ("LASTSYN_SERVICE_PORT_HTTP", "19480"),
            ("LASTSYN_PORT", "tcp://10.96.0.7:19480"),
            ("LASTSYN_PORT_19480_TCP", "tcp://10.96.0.7:19480"),
            ("LASTSYN_PORT_19480_TCP_PROTO", "tcp"),
            ("LASTSYN_FENCE_SERVICE_HOST", "10.96.0.8"),
            ("LASTSYN_FENCE_SERVICE_PORT_METRICS", "19481"),
            ("LASTSYN_FENCE_PORT", "tcp://10.96.0.8:19481"),
            ("LASTSYN_FENCE_PORT_19481_TCP_ADDR", "10.96.0.8"),
            ("LASTSYN_FENCE_PORT_19481_UDP_PORT", "19481"),
            ("LASTSYN_FENCE_PORT_19481_SCTP", "sctp://10.96.0.8:19481"),
        ] {
            assert!(take(name, value).is_ok(), "{name}");
        }
    }

    #[test]
    fn takes_no_mistake_for_one() {
        for (name, value) in [
            ("LASTSYN_SERVER_PORT", "19480"),
            ("LASTSYN_PORT_HTTP", "19480"),
            ("LASTSYN_PORT_19480_HTTP", "1"),
            ("LASTSYN_PORT_19480_TCP_NAME", "1"),
            ("LASTSYN_QUIET_PERIOD", "2s"),
            ("LASTSYN_", ""),
        ] {
            assert!(matches!(take(name, value), Err(ConfigError::UnknownKey { .. })), "{name}");
        }
    }

    #[test]
    fn no_key_looks_like_the_variable_of_a_service() {
        // The design's own name. A Service would have to be called `lastsyn-routing-kube-proxy-healthz`; and a key goes first.
        let named_so = "routing.kubeProxyHealthzPort";
        for key in keys::all().iter().filter(|key| key.name() != named_so) {
            let rest = key.variable().strip_prefix(PREFIX).expect("the prefix");
            assert!(!from_kubernetes(rest, "tcp://10.96.0.7:19480"), "{}", key.variable());
        }
    }

    #[test]
    fn the_downward_api_s_usual_names_are_taken_where_they_can_be_meant() {
        let config = |name, value| {
            let mut layers = Layers::defaults();
            apply_downward(&mut layers, name, value);
            layers.build().expect("valid").0.pod
        };
        assert_eq!(config("POD_NAME", "17").name, "17");
        assert_eq!(config("NODE_NAME", "node-a").node_name, "node-a");
        assert_eq!(config("POD_IPS", "10.0.0.1,fd00::1").ips.len(), 2);
        assert_eq!(config("HOST_IPS", "10.0.0.1").host_ips.len(), 1);
        assert_eq!(config("POD_IPS", "all of them"), super::super::Pod::default());
        assert_eq!(config("HOSTNAME", "web-1"), super::super::Pod::default());
    }

    #[test]
    fn names_the_nearest_variable() {
        let Err(error) = take("LASTSYN_DRAIN_QUIETPERIOD", "2s") else { panic!("taken") };
        assert!(error.to_string().contains("LASTSYN_DRAIN_QUIET_PERIOD"), "{error}");
    }
}
