//! EndpointSlices.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
};

use k8s_openapi::{
    api::discovery::v1::{Endpoint as ApiEndpoint, EndpointPort, EndpointSlice},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{Converted, HEADLESS, PROXY_NAME, SERVICE_NAME, label, name, version};
use crate::core::{
    cluster::{Endpoint, NodeName, PortName, ServiceName, ServiceProxy, Slice, SliceName, SlicePort, Transport},
    listener::Family,
};

/// A slice; `None` where it has no name, which no API server sends.
///
/// A slice that kube-proxy makes nothing of lists nobody here: one of host names (`addressType: FQDN`, or a type that is
/// not known), and one without a Service's name. It is kept all the same, so that a consistent read, which shows names
/// and versions alone, shows what is believed.
///
/// An endpoint is left out, and counted, when none of its addresses can be read as one of the slice's family: kube-proxy
/// drops it as well (`endpointslicecache.go`). So is a port of an unknown protocol or without a number from 1 to 65535.
pub fn slice(slice: &EndpointSlice) -> Option<Converted<Slice>> {
    let family = match slice.address_type.as_str() {
        "IPv4" => Some(Family::V4),
        "IPv6" => Some(Family::V6),
        _ => None,
    };
    let service = label(&slice.metadata, SERVICE_NAME).filter(|service| !service.is_empty());
    let mut empty = without_endpoints(&slice.metadata)?;
    let (Some(family), Some(_)) = (family, service) else {
        return Some(Converted { value: empty, left_out: 0 });
    };
    empty.family = family;
    let mut left_out = 0;
    let mut kept = |count: u32| left_out += count;
    let endpoints = slice.endpoints.iter().filter_map(|endpoint| {
        let endpoint = convert_endpoint(endpoint, family);
        kept(u32::from(endpoint.is_none()));
        endpoint
    });
    empty.endpoints = endpoints.collect();
    for port in slice.ports.iter().flatten() {
        match convert_port(port) {
            Port::Of(port) => empty.ports.push(port),
            Port::Unnumbered => {}
            Port::Unreadable => left_out += 1,
        }
    }
    Some(Converted { value: empty, left_out })
}

/// A slice of which only the metadata is known or of use: it lists nobody.
pub fn without_endpoints(metadata: &ObjectMeta) -> Option<Slice> {
    Some(Slice {
        name: SliceName(name(metadata)?.to_owned()),
        version: version(metadata),
        service: ServiceName(label(metadata, SERVICE_NAME).unwrap_or_default().to_owned()),
        family: Family::V4,
        proxy: proxy(metadata),
        ports: Vec::new(),
        endpoints: Vec::new(),
    })
}

/// kube-proxy's informers select slices that carry neither label, whatever the labels' values.
fn proxy(metadata: &ObjectMeta) -> ServiceProxy {
    match (label(metadata, PROXY_NAME), label(metadata, HEADLESS)) {
        (Some(_), _) => ServiceProxy::Foreign,
        (None, Some(_)) => ServiceProxy::Headless,
        (None, None) => ServiceProxy::KubeProxy,
    }
}

fn convert_endpoint(endpoint: &ApiEndpoint, family: Family) -> Option<Endpoint> {
    let addresses: Vec<IpAddr> =
        endpoint.addresses.iter().filter_map(|text| address(text)).filter(|address| is_of(*address, family)).collect();
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    Some(Endpoint {
        address: *addresses.first()?,
        addresses: addresses.into_iter().collect::<BTreeSet<_>>(),
        ready: conditions.ready,
        serving: conditions.serving,
        terminating: conditions.terminating,
        node: endpoint.node_name.clone().filter(|node| !node.is_empty()).map(NodeName),
    })
}

/// An address as kube-proxy reads it: `netutils.ParseIPSloppy` takes leading zeros of IPv4's parts for nothing.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| {
        let mut parts = [0; 4];
        let mut texts = text.split('.');
        for part in &mut parts {
            let digits =
                texts.next().filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))?;
            *part = match digits.trim_start_matches('0') {
                "" => 0,
                digits => digits.parse().ok()?,
            };
        }
        texts.next().is_none().then(|| Ipv4Addr::from(parts).into())
    })
}

fn is_of(address: IpAddr, family: Family) -> bool {
    address.is_ipv4() == (family == Family::V4)
}

enum Port {
    Of(SlicePort),
    /// It has no number. kube-proxy skips it, and that is no mistake.
    Unnumbered,
    Unreadable,
}

fn convert_port(port: &EndpointPort) -> Port {
    let Some(number) = port.port else { return Port::Unnumbered };
    let (Some(transport), Some(number)) = (transport(port.protocol.as_deref()), number.try_into().ok()) else {
        return Port::Unreadable;
    };
    match number {
        0 => Port::Unreadable,
        number => Port::Of(SlicePort { name: PortName(port.name.clone().unwrap_or_default()), transport, number }),
    }
}

fn transport(protocol: Option<&str>) -> Option<Transport> {
    match protocol {
        None | Some("" | "TCP") => Some(Transport::Tcp),
        Some("UDP") => Some(Transport::Udp),
        Some("SCTP") => Some(Transport::Sctp),
        Some(_) => None,
    }
}
