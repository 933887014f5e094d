//! What the agent will find in the pod.

use std::{
    collections::BTreeSet,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use super::{super::status, table::Line};
use crate::{
    client::Candidate,
    config::{Config, Watch},
    core::{event::Depth, listener::Family},
    sensor::{Interfaces, LinkLayer, Scope, families},
    server::status::Status,
    sockets,
};

pub(super) async fn interfaces() -> Vec<Line> {
    let opened = match Interfaces::open() {
        Ok(interfaces) => interfaces,
        Err(error) => {
            return vec![Line::failure("interfaces", error.to_string(), "the agent does not start like this")];
        }
    };
    let (list, addresses) = match (opened.list().await, opened.addresses().await) {
        (Ok(list), Ok(addresses)) => (list, addresses),
        (Err(error), _) | (_, Err(error)) => {
            return vec![Line::failure("interfaces", error.to_string(), "the agent does not start like this")];
        }
    };
    let names: Vec<_> = list
        .iter()
        .filter(|interface| interface.link_layer == LinkLayer::Ethernet)
        .map(|interface| interface.name.clone())
        .collect();
    let mut lines = vec![if names.is_empty() {
        Line::warning("interfaces", "none but the loopback", "is this the pod's network namespace?")
    } else {
        Line::ok("interfaces", names.join(", "))
    }];
    for interface in list.iter().filter(|interface| interface.up) {
        if let LinkLayer::Other(number) = interface.link_layer {
            lines.push(Line::warning(
                "interfaces",
                format!("{} is not Ethernet (link type {number}) and will not be watched", interface.name),
                "drains end `unverified` at best",
            ));
        }
    }
    let reachable = families(&addresses);
    let names: Vec<_> = Family::ALL.into_iter().filter(|family| *reachable.get(*family)).map(Family::name).collect();
    lines.push(if names.is_empty() {
        Line::warning("addresses", "none but loopback and link-local ones", "is this the pod's network namespace?")
    } else {
        Line::ok("addresses", names.join(" and "))
    });
    lines
}

/// What is watched and open, for people and by its numbers.
pub(super) fn listeners(config: &Config) -> (Line, BTreeSet<u16>) {
    let found = match sockets::read(Depth::Listeners, &BTreeSet::new()) {
        Ok(found) => found,
        Err(error) => {
            let advice = "without the socket table every drain lasts to its bound";
            return (Line::warning("listeners", error, advice), BTreeSet::new());
        }
    };
    let own: Vec<u16> = [config.server.address.port()].into_iter().chain(config.proxy.own_ports()).collect();
    let wanted = |port: u16| match &config.listeners.watch {
        Watch::Auto => {
            !own.contains(&port) && !config.listeners.exclude.iter().any(|excluded| excluded.number() == port)
        }
        Watch::Ports(ports) => ports.iter().any(|watched| watched.number() == port),
    };
    let open: BTreeSet<u16> = found.listeners.keys().map(|port| port.number()).filter(|port| wanted(*port)).collect();
    (tell_listeners(config, &open), open)
}

fn tell_listeners(config: &Config, open: &BTreeSet<u16>) -> Line {
    if open.is_empty() {
        let found = "none that is watched is open now";
        return Line::warning("listeners", found, "the server opens its ports later, or listeners.watch names others");
    }
    let ports: Vec<_> = open.iter().map(ToString::to_string).collect();
    let found = format!("watched and open: {}", ports.join(", "));
    if config.listeners.watch == Watch::Auto && Scope::of(config.sensor.network) == Scope::Node {
        let advice = "the node's listeners are among them, and hold drains; name the pod's ports in listeners.watch";
        return Line::warning("listeners", found, advice);
    }
    Line::ok("listeners", found)
}

/// Whether an agent answers, or its address is free.
pub(super) async fn agent(config: &Config) -> Line {
    let address = config.server.address;
    match TcpListener::bind(address).map_err(|error| (error.kind(), error)) {
        Ok(_) => Line::note("agent", format!("none runs here; {address} is free for it"), "`lastsyn run` starts it"),
        Err((ErrorKind::AddrInUse, _)) => occupied(address).await,
        Err((_, error)) => {
            let advice = "server.address takes an address of the pod and a port";
            Line::failure("agent", format!("it cannot listen on {address}: {error}"), advice)
        }
    }
}

async fn occupied(address: SocketAddr) -> Line {
    let ip = match address.ip() {
        ip if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    let answer = status::ask(&Candidate::Tcp((ip, address.port()).into())).await;
    match answer.and_then(|body| serde_json::from_str::<Status>(&body).map_err(|error| error.to_string())) {
        Ok(status) => Line::ok("agent", format!("version {} runs and answers at {address}", status.version)),
        Err(error) => Line::failure(
            "agent",
            format!("{address} is in use, and not by an agent: {error}"),
            "set server.address to a free port, and LASTSYN_SERVER_ADDRESS for the hook",
        ),
    }
}
