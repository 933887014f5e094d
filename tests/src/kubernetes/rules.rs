//! What a node's rules do, read from the rules themselves: the truth that a kube-proxy's answers are held against.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};

use super::Mode;
use crate::Host;

/// Whether a node's rules send new connections of any Service to an endpoint.
pub(crate) fn route_to(node: &Host, mode: Mode, endpoint: SocketAddr) -> Result<bool> {
    let text = match (mode, endpoint.is_ipv4()) {
        (Mode::Nftables, true) => print(node, "nft", &["list", "table", "ip", "kube-proxy"])?,
        (Mode::Nftables, false) => print(node, "nft", &["list", "table", "ip6", "kube-proxy"])?,
        (Mode::Iptables, true) => print(node, "iptables-save", &["-t", "nat"])?,
        (Mode::Iptables, false) => print(node, "ip6tables-save", &["-t", "nat"])?,
    };
    Ok(match mode {
        Mode::Nftables => nftables_name(&text, endpoint),
        Mode::Iptables => iptables_name(&text, endpoint),
    })
}

/// A service's chain holds `dnat to 10.244.1.11:8080` where it has one endpoint, and otherwise
/// `dnat ip to numgen random mod 2 map { 0 : 10.244.1.11 . 8080, 1 : ... }`, over several lines.
fn nftables_name(rules: &str, endpoint: SocketAddr) -> bool {
    let alone = endpoint.to_string();
    let in_map = format!("{} . {}", endpoint.ip(), endpoint.port());
    let statements = rules.split(" dnat ").skip(1).filter_map(|rest| {
        let line = rest.lines().next()?;
        line.contains("to ").then(|| if line.contains('{') { rest.split('}').next() } else { Some(line) })?
    });
    statements.flat_map(|statement| statement.split(['{', ','])).any(|part| {
        part.split_once(" : ").is_some_and(|(_, to)| to.trim() == in_map)
            || part.split_once("to ").is_some_and(|(_, to)| to.trim() == alone)
    })
}

/// A service's chain holds `--comment "default/web:http -> 10.244.1.11:8080" -j KUBE-SEP-...`.
fn iptables_name(rules: &str, endpoint: SocketAddr) -> bool {
    let wanted = format!(" -> {endpoint}\"");
    rules.lines().any(|line| line.starts_with("-A KUBE-SV") && line.contains("-j KUBE-SEP-") && line.contains(&wanted))
}

fn print(node: &Host, program: &str, arguments: &[&str]) -> Result<String> {
    let output = node.command(program)?.args(arguments).output().with_context(|| format!("{program} did not run"))?;
    ensure!(
        output.status.success(),
        "{program} {} in {} failed: {}",
        arguments.join(" "),
        node.role(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NFTABLES: &str = "\
        chain masquerading {\n\
            ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade\n\
        }\n\
        chain service-K6FVVQO7-default/web/tcp/http {\n\
            ip daddr 10.96.161.25 tcp dport 80 ip saddr != 10.244.0.0/16 jump mark-for-masquerade\n\
            meta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 10.244.1.11 . 8080,\n\
                1 : 10.244.2.11 . 8080 }\n\
        }\n\
        chain service-SUSTUHLJ-default/other/tcp/http {\n\
            meta l4proto tcp dnat to 10.244.2.10:8081\n\
        }\n\
        chain service-SUSTUHLJ-default/other/tcp/http {\n\
            meta l4proto tcp dnat to [fd00:244:2::10]:8081\n\
        }\n\
        set cluster-ips { elements = { 10.244.3.11 . 8080 } }\n";

    const IPTABLES: &str = "\
        -A KUBE-SEP-4 -p tcp -m comment --comment \"default/web:http\" -m tcp -j DNAT --to-destination 10.244.3.11:8080\n\
        -A KUBE-SVC-1 -m comment --comment \"default/web:http -> 10.244.1.11:8080\" -j KUBE-SEP-2\n\
        -A KUBE-SVL-1 -m comment --comment \"default/web:http -> [fd00:244:1::11]:8080\" -j KUBE-SEP-3\n";

    #[test]
    fn an_endpoint_is_found_whole_and_only_where_traffic_goes_to() {
        let is = |name: fn(&str, SocketAddr) -> bool, rules, text: &str| name(rules, text.parse().unwrap());
        for (text, expected) in [
            ("10.244.1.11:8080", true),
            ("10.244.2.11:8080", true),
            ("10.244.2.10:8081", true),
            ("[fd00:244:2::10]:8081", true),
            ("10.244.2.1:8080", false),
            ("10.244.2.10:8080", false),
            ("10.244.2.10:808", false),
            ("10.244.2.11:80", false),
            ("10.244.3.11:8080", false),
        ] {
            assert_eq!(is(nftables_name, NFTABLES, text), expected, "{text}");
        }
        for (text, expected) in [
            ("10.244.1.11:8080", true),
            ("[fd00:244:1::11]:8080", true),
            ("10.244.1.1:8080", false),
            ("10.244.3.11:8080", false),
        ] {
            assert_eq!(is(iptables_name, IPTABLES, text), expected, "{text}");
        }
    }
}
