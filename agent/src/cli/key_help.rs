//! One sentence for each key, for `--help`. What each value does in full is with [`crate::config::Config`].

/// Key and help.
pub(super) const HELP: &[(&str, &str)] = &[
    (
        "afterEnd.linger",
        "How long to stay, when asked to stop, after the last listener of a drain has closed: to count the SYNs that still \
         come",
    ),
    ("drain.exitAtConnections", "Hold until at most this many connections are established; null: do not wait for any"),
    ("drain.handshakeGrace", "How long a handshake under way holds the drain"),
    (
        "drain.maxWait",
        "The bound: no drain lasts longer; auto: the pod's grace period less drain.stop-reserve; Kubernetes' default of 30s \
         is taken where the pod cannot be read",
    ),
    ("drain.minWait", "No drain ends before this"),
    ("drain.quietPeriod", "No new connection for this long, on every listener and family, is quiet"),
    (
        "drain.restartGuard",
        "How long a sign is waited for that the pod is terminating before the server in it is told anything; 0s: the caller \
         of the hook is believed",
    ),
    ("drain.retryWait", "How long a SYN that was dropped unanswered holds the drain: its client tries again"),
    ("drain.stopReserve", "What drain.max-wait=auto leaves for the server's own stop"),
    ("fence.address", "Address and port of the fence's HTTP server (lastsyn fence)"),
    (
        "fence.callers",
        "Who may ask the fence: endpoints: pods whose endpoints are going, by their addresses; any: whoever reaches it",
    ),
    ("fence.maxNodes", "Above this many nodes the fence does not serve: each of its writes is sent to all of them"),
    ("fence.maxRate", "The most requests a second that the fence sends to all nodes together"),
    ("fence.pollInterval", "The time between a node's answer and the fence's next request"),
    (
        "fence.spacing",
        "At least so long between two writes of the fence; it serves agents whose routing.watch-lag is at most twice this",
    ),
    ("listeners.exclude", "Ports that listeners.watch=auto leaves out"),
    (
        "listeners.ignoreSources",
        "Networks whose SYNs do not hold a drain, [192.0.2.0/24]: a load balancer's health checkers",
    ),
    (
        "listeners.probes",
        "Ports at which kubelet probes the pod, [{port: 8080, period: 10s}]: its SYNs to them do not hold a drain; auto: \
         those of the pod's own object; off",
    ),
    (
        "listeners.watch",
        "The watched ports, [80, 443, 443/udp]; auto: every TCP listener that is bound to more than loopback",
    ),
    (
        "loadBalancer.window",
        "How long a load balancer may take to find this node failing by a Service's healthCheckNodePort, and to act on it",
    ),
    ("log.format", "json or text"),
    ("log.level", "trace, debug, info, warn, error or off; also per target: info,lastsyn::sensor=debug"),
    (
        "mode",
        "drain, or observe: no hook is held and nobody is told anything; only how long new connections keep coming is measured",
    ),
    ("pod.hostIps", "The node's addresses (status.hostIPs), where its healthCheckNodePort is asked"),
    ("pod.ips", "The pod's addresses (status.podIPs); none: those of the network namespace"),
    ("pod.name", "The pod's name (metadata.name)"),
    ("pod.namespace", "The pod's namespace (metadata.namespace); none: the service account's"),
    ("pod.nodeName", "The pod's node (spec.nodeName), for Services with a Local policy"),
    ("pod.uid", "The pod's UID (metadata.uid)"),
    ("proxy.envoy.admin", "Envoy's admin interface, ADDRESS:PORT or unix:PATH"),
    ("proxy.envoy.inboundOnly", "Ask only clients of inbound listeners to leave, as in a mesh"),
    ("proxy.haproxy.announceServer", "A server of HAProxy, BACKEND/SERVER, that is disabled to announce a drain"),
    ("proxy.haproxy.master", "The socket is the master's: speak to its first worker"),
    ("proxy.haproxy.readinessServer", "A server of HAProxy, BACKEND/SERVER, that is disabled to fail readiness"),
    ("proxy.haproxy.socket", "HAProxy's runtime socket of level admin, unix:PATH or ADDRESS:PORT"),
    (
        "proxy.http.announce",
        "The request that asks clients to leave: {method: POST, url: http://127.0.0.1:8080/drain, body: \"\", status: 200}",
    ),
    ("proxy.http.failReadiness", "The request that fails readiness"),
    ("proxy.http.takeBack", "The request that takes back what can be, where the pod turns out not to be terminating"),
    ("proxy.kind", "The server in the pod that is told of a drain: none, envoy, haproxy or http"),
    (
        "readiness.failAfter",
        "When readiness fails in a drain: never, 40s, or auto: once another endpoint takes over, where routing is watched",
    ),
    (
        "readiness.upstream",
        "{NAME: URL}: answer GET /ready/NAME with what the URL does, and with 503 once readiness fails",
    ),
    (
        "report.events",
        "Write a drain's beginning and end as Events on the pod; needs the right to create events.k8s.io events",
    ),
    (
        "report.sources",
        "Who sends SYNs while a drain runs, in status, verdict and log: masked (outside the cluster only the network), full, or \
         off: not kept",
    ),
    ("routing.accept", "Paths that are not observed and that are acknowledged: [headless/web]"),
    ("routing.enabled", "Watch EndpointSlices, Services and every node's kube-proxy while a drain runs"),
    (
        "routing.fence",
        "The cluster's fence, http://lastsyn-fence.lastsyn-system:19481, or off; with one a drain can end routed-away",
    ),
    ("routing.ignoreNodes", "A label selector of nodes that are neither asked nor awaited"),
    ("routing.kubeProxyHealthzPort", "kube-proxy's health port on every node; 0: ask none"),
    ("routing.maxNodes", "Above this many nodes none is asked"),
    ("routing.minSync", "kube-proxy's minSyncPeriod"),
    ("routing.poll.interval", "The time between a node's answer and the next request, at the least"),
    ("routing.poll.maxRate", "The most requests a second to all nodes together"),
    ("routing.poll.timeout", "For how long a connection and an answer are waited for"),
    (
        "routing.source",
        "Who tells of slices, Services and the pod: api, or fence, with which the pod needs no token of the API server",
    ),
    ("routing.syncTime", "The bound that is assumed on one sync of a node's rules"),
    ("routing.watchLag", "The bound that is assumed on how late a node hears of a change"),
    (
        "sensor.network",
        "Whose network the agent is in: pod, or node with hostNetwork: true; auto: node if it is the machine's first",
    ),
    ("sensor.reattach", "Put the eBPF program back where something takes it away"),
    (
        "sensor.strategy",
        "How SYNs are seen: tcx, clsact or cgroup (eBPF), packet, or counters; auto: the best that can be had",
    ),
    ("server.address", "Where the agent answers HTTP"),
    ("server.hookFrom", "Who may call the hook over HTTP: pod, or node: kubelet's httpGet hook too"),
    ("server.socket", "Unix socket with the same answers; \"\": none"),
    ("state.path", "Where the courses of the last drains are kept for an agent that is started again; \"\": nowhere"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Key, keys};

    #[test]
    fn every_key_has_its_help_and_nothing_else_has() {
        let documented: Vec<_> = HELP.iter().map(|(key, _)| *key).collect();
        assert_eq!(documented, keys().iter().map(Key::name).collect::<Vec<_>>());
        assert!(HELP.iter().all(|(_, help)| !help.is_empty()));
    }
}
